#include "aes.hpp"

#ifdef UIDGEN_OPENSSL
#include <openssl/err.h>
#include <openssl/evp.h>
#endif

namespace uidgen::pg {

#ifdef UIDGEN_OPENSSL

namespace {

EVP_CIPHER_CTX *context_of(AesKey *key) { return reinterpret_cast<EVP_CIPHER_CTX *>(key); }

[[noreturn]] void report_openssl() {
    char message[256] = "no reason given";
    const unsigned long error = ERR_get_error();
    if (error != 0)
        ERR_error_string_n(error, message, sizeof(message));
    ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("could not encrypt with AES-256: %s", message),
                    errhint("Check that the configuration of OpenSSL on this server allows AES-256 in ECB mode.")));
}

} // namespace

AesKey *aes_open(const uint8_t *secret) {
    ERR_clear_error();
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == nullptr || EVP_EncryptInit_ex(context, EVP_aes_256_ecb(), nullptr, secret, nullptr) != 1) {
        EVP_CIPHER_CTX_free(context);
        report_openssl();
    }
    return reinterpret_cast<AesKey *>(context);
}

void aes_close(AesKey *key) { EVP_CIPHER_CTX_free(context_of(key)); }

// Each text is one whole block, so the mode does not matter, and nothing waits for padding.
core::Block aes_encrypt(AesKey *key, const core::Block &text) {
    core::Block result;
    int length = 0;
    if (EVP_EncryptUpdate(context_of(key), result.bytes, &length, text.bytes, sizeof(text.bytes)) != 1 ||
        length != sizeof(result.bytes))
        report_openssl();
    return result;
}

#else

namespace {

[[noreturn]] void report_no_openssl() {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("ids cannot be concealed on this server"),
                    errdetail("uidgen was built without OpenSSL."),
                    errhint("Build PostgreSQL with OpenSSL (configure --with-ssl=openssl), then build uidgen again.")));
}

} // namespace

AesKey *aes_open(const uint8_t *) { report_no_openssl(); }
void aes_close(AesKey *) {}
core::Block aes_encrypt(AesKey *, const core::Block &) { report_no_openssl(); }

#endif

} // namespace uidgen::pg
