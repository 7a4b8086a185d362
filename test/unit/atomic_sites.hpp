// The atomic operations in the source of src/core, found in its text.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
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

inline void find_atomic_sites(const std::filesystem::path &path, std::vector<AtomicSite> *sites) {
    static const std::regex call(R"((?:[.>]((?:load|store|exchange|compare_exchange_\w+|fetch_\w+))|\b(raise_to))\()");
    static const std::regex order(R"(memory_order_(\w+))");
    const std::string text = source_without_comments(path);
    for (std::sregex_iterator i(text.begin(), text.end(), call), end; i != end; ++i) {
        const size_t open = static_cast<size_t>(i->position() + i->length()) - 1;
        const size_t close = end_of_call(text, open);
        AtomicSite site = {
            path.filename().string(), (*i)[1].str() + (*i)[2].str(), line_at(text, open), line_at(text, close), {}};
        const std::string arguments = text.substr(open, close - open);
        for (std::sregex_iterator o(arguments.begin(), arguments.end(), order); o != end; ++o)
            site.orders.push_back((*o)[1]);
        // The definition of raise_to() is not a call.
        if (arguments.find("std::memory_order order") == std::string::npos)
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
