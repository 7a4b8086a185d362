// Parses the answers of a registry, which are rows of texts from another server. Whatever they say, the result is an
// answer that can be judged, or false.
//
// Rows has count(), columns(), and text(row, column), which is null for a NULL. Texts of an answer last as long as its
// rows.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "holding.hpp"

namespace uidgen::core {

// What an answer says in addition to Answer.
struct AnswerNotes {
    int64_t until_us; // of a refusal; 0: unknown
    const char *detail;
};

struct GrantAnswer {
    Answer answer;
    AnswerNotes notes;
};

struct BlockReply {
    Answer answer; // without a grant
    AnswerNotes notes;
    int64_t first;
    int64_t count;
    int64_t increment;
};

// False: the column is NULL or no number.
template <typename Rows> bool read_number(const Rows &rows, int row, int column, int64_t *number) {
    const char *text = rows.text(row, column);
    char *end = nullptr;
    if (text == nullptr)
        return false;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

constexpr bool is_instant(int64_t us) noexcept { return us >= 0 && us <= max_instant_us; }

// NULL or an empty word: what was asked for is granted.
inline Why why_of(const char *word) noexcept {
    if (word == nullptr || word[0] == '\0')
        return Why::granted;
    for (auto why = static_cast<uint8_t>(Why::ahead); why < static_cast<uint8_t>(Why::unknown); why++)
        if (strcmp(why_name(static_cast<Why>(why)), word) == 0)
            return static_cast<Why>(why);
    return Why::unknown;
}

template <typename Rows> bool parse_hello(const Rows &rows, Hello *hello) {
    return rows.count() == 1 && rows.columns() >= 4 && read_number(rows, 0, 0, &hello->fleet) &&
           read_number(rows, 0, 1, &hello->term) && read_number(rows, 0, 2, &hello->longest) &&
           read_number(rows, 0, 3, &hello->clock) && hello->fleet > 0 && hello->term > 0 && hello->longest > 0 &&
           is_instant(hello->longest) && is_instant(hello->clock);
}

// The answer to the request of that index; false: there is none that can be read.
template <typename Rows> bool parse_grant_answer(const Rows &rows, int index, int64_t fleet, GrantAnswer *answer) {
    int64_t number = 0;
    if (rows.columns() != 8)
        return false;
    for (int row = 0; row < rows.count(); row++) {
        if (!read_number(rows, row, 0, &number) || number != index + 1)
            continue;
        *answer = {};
        Grant &grant = answer->answer.grant;
        answer->answer.fleet = fleet;
        answer->answer.why = why_of(rows.text(row, 1));
        answer->notes.detail = rows.text(row, 7);
        const bool has_until = read_number(rows, row, 4, &grant.until) && is_instant(grant.until);
        answer->notes.until_us = has_until ? grant.until : 0;
        const bool is_granted = answer->answer.why == Why::granted;
        return read_number(rows, row, 6, &answer->answer.term) &&
               (!is_granted ||
                (has_until && read_number(rows, row, 2, &grant.node) && read_number(rows, row, 3, &grant.since)));
    }
    return false;
}

template <typename Rows> bool parse_block_reply(const Rows &rows, int64_t fleet, BlockReply *reply) {
    *reply = {};
    if (rows.count() != 1 || rows.columns() != 6 || !read_number(rows, 0, 4, &reply->answer.term))
        return false;
    reply->answer.fleet = fleet;
    reply->answer.why = why_of(rows.text(0, 0));
    reply->notes.detail = rows.text(0, 5);
    return reply->answer.why != Why::granted ||
           (read_number(rows, 0, 1, &reply->first) && read_number(rows, 0, 2, &reply->count) &&
            read_number(rows, 0, 3, &reply->increment) && reply->count > 0);
}

} // namespace uidgen::core
