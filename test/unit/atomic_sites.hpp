// The atomic operations in the source of src/core, found in its text.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace uidgen::test {

// A call of an atomic's member, or of raise_to(), which passes its order on.
struct AtomicSite {
    std::string file; // without its directory
    std::string call;
    int first_line;
    int last_line;
    std::vector<std::string> orders; // the names of its arguments' orders, without memory_order_

    std::string place() const { return file + ":" + std::to_string(first_line) + " " + call; }
};

// The text with comments blanked out, so that its lines stay where they are.
inline std::string source_without_comments(const std::filesystem::path &path) {
    std::ifstream file(path);
    std::string all;
    for (std::string line; std::getline(file, line);)
        all += line.substr(0, line.find("//")) + "\n";
    return all;
}

inline size_t end_of_call(const std::string &text, size_t open) {
    int depth = 0;
    for (size_t i = open; i < text.size(); i++) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0)
            return i;
    }
    return text.size();
}

inline int line_at(const std::string &text, size_t offset) {
    return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(offset), '\n'));
}

inline bool is_word(char c) { return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The word that ends before a place.
inline std::string word_before(const std::string &text, size_t end) {
    size_t begin = end;
    while (begin > 0 && is_word(text[begin - 1]))
        begin--;
    return text.substr(begin, end - begin);
}

inline bool is_atomic_call(const std::string &text, size_t open) {
    const std::string name = word_before(text, open);
    const size_t begin = open - name.size();
    const bool is_member = begin > 0 && (text[begin - 1] == '.' || text[begin - 1] == '>');
    const auto starts_with = [&name](const char *what) { return name.rfind(what, 0) == 0; };
    return name == "raise_to" || (is_member && (name == "load" || name == "store" || name == "exchange" ||
                                                starts_with("compare_exchange_") || starts_with("fetch_")));
}

inline void find_atomic_sites(const std::filesystem::path &path, std::vector<AtomicSite> *sites) {
    const std::string text = source_without_comments(path);
    for (size_t open = text.find('('); open != std::string::npos; open = text.find('(', open + 1)) {
        const size_t close = end_of_call(text, open);
        const std::string arguments = text.substr(open, close - open);
        // The definition of raise_to() is not a call.
        if (!is_atomic_call(text, open) || arguments.find("std::memory_order order") != std::string::npos)
            continue;
        AtomicSite site = {
            path.filename().string(), word_before(text, open), line_at(text, open), line_at(text, close), {}};
        const std::string order = "memory_order_";
        for (size_t at = arguments.find(order); at != std::string::npos; at = arguments.find(order, at + 1)) {
            size_t end = at + order.size();
            while (is_word(arguments[end]))
                end++;
            site.orders.push_back(arguments.substr(at + order.size(), end - at - order.size()));
        }
        sites->push_back(site);
    }
}

inline std::vector<AtomicSite> atomic_sites(const std::filesystem::path &directory) {
    std::vector<AtomicSite> sites;
    for (const auto &entry : std::filesystem::directory_iterator(directory))
        if (entry.path().extension() == ".hpp")
            find_atomic_sites(entry.path(), &sites);
    return sites;
}

} // namespace uidgen::test
