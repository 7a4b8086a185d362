// Whatever a user may write: labels, short forms, UUIDs, fields of definitions, keys; and whatever a registry may answer.
// Each text is in memory of its own size, so the sanitizers notice one byte read or written beyond it. The seed is
// constant.
#include "answer_text.hpp"
#include "concealed_id.hpp"
#include "definition_text.hpp"
#include "id_forms.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace uidgen::core;

namespace {

constexpr int rounds = 20000;

const std::string generator_label =
    "generator preset=\"js53\" epoch=2026-01-01T00:00:00Z tick_us=1000000 time_bits=32 datacenter_bits=0 worker_bits=5 "
    "sequence_bits=16 sequence_first=false backup_worker=true lease_ms=1000 max_ahead_ms=2000 when_full=backup "
    "when_back=backup tolerance_ms=1000 spread=false worker_policy=disposable worker_number=null datacenter_id=null "
    "own_pool=false mode=snowflake boost_power=3 padding_factor=50 schedule_ms=null "
    "when_ring_empty=pad max_staleness_ms=5000 created=2026-11-26T19:55:00.123456Z is_default=true";

using Random = std::mt19937_64;

uint64_t below(Random *random, uint64_t n) { return (*random)() % n; }

// A number as users write them: mostly near a bound.
int64_t number(Random *random) {
    constexpr int64_t bounds[] = {0, 1, 5, 31, 47, 63, 64, 255, 1000, INT32_MAX, max_tick_us, INT64_MAX, INT64_MIN};
    const int64_t bound = bounds[below(random, std::size(bounds))];
    const auto by = static_cast<int64_t>(below(random, 4));
    return below(random, 8) == 0 ? static_cast<int64_t>((*random)()) : bound > 3 ? bound - by : bound + by;
}

// Random changes of a text, in which words of labels are likely.
std::string changed(Random *random, std::string text) {
    const char *const pieces[] = {"\"",
                                  "\"\"",
                                  " ",
                                  "=",
                                  "null",
                                  "generator ",
                                  "segment ",
                                  "key id=",
                                  " name=\"",
                                  "-1",
                                  "9223372036854775808",
                                  "T",
                                  "Z",
                                  "\xC3",
                                  "\xFF",
                                  "2026-02-30T",
                                  "99999-13-"};
    for (uint64_t changes = below(random, 4); changes > 0; changes--) {
        const size_t at = below(random, text.size() + 1);
        const std::string piece = below(random, 3) == 0 ? std::string(1, static_cast<char>(1 + below(random, 255)))
                                                        : pieces[below(random, std::size(pieces))];
        switch (below(random, 4)) {
        case 0:
            text.insert(at, piece);
            break;
        case 1:
            text.erase(at, below(random, 20));
            break;
        case 2:
            text.resize(at);
            break;
        default:
            text.replace(at, std::min<size_t>(piece.size(), text.size() - at), piece);
        }
    }
    return text;
}

std::unique_ptr<char[]> exactly(const std::string &text) {
    auto copy = std::make_unique<char[]>(text.size() + 1);
    memcpy(copy.get(), text.c_str(), text.size() + 1);
    return copy;
}

// As an error shows it.
void show(const Definition &d, const DefinitionFault &fault) {
    char value[256];
    if (fault.field != nullptr) {
        (void)print_value(d, *fault.field, value, sizeof(value));
        (void)print_allowed(*fault.field, value, sizeof(value));
    }
    const std::string at = fault.at != nullptr ? std::string(fault.at, fault.size) : "";
    ASSERT_EQ(at.size(), fault.size);
}

// The views show every field that can be read.
size_t print_all(const Definition &d) {
    char value[256];
    size_t size = 0;
    for (const Field &field : fields_of(d.kind))
        size += print_value(d, field, value, sizeof(value));
    return size;
}

TEST(Fuzz, Labels) {
    Random random(20261128);
    const std::string labels[] = {
        generator_label,
        "segment name=\"a \"\"b\"\"\" step=10 max_step=1000 registry_name=\"null\" fleet=7 increment=-3", "key id=5"};
    int unended = 0;
    for (int round = 0; round < rounds; round++) {
        const std::string text = changed(&random, labels[below(&random, std::size(labels))]);
        const auto source = exactly(text);
        const std::unique_ptr<char[]> space(
            new char[text.size() + 1]); // no NUL but those that parse_definition() writes
        memset(space.get(), 'x', text.size() + 1);
        Definition d;
        const DefinitionFault fault = parse_definition(source.get(), &d, space.get());
        show(d, fault);
        if (fault.kind == FaultKind::value && fault.field->type == FieldType::text)
            unended++;
        if (fault.kind != FaultKind::kind)
            print_all(d);
    }
    EXPECT_GT(unended, 100);
}

// Valid or not, what a definition means can be computed once it is checked.
TEST(Fuzz, Fields) {
    Random random(20261128);
    int valid = 0;
    for (int round = 0; round < rounds; round++) {
        Definition d;
        char space[sizeof("js53")];
        ASSERT_EQ(parse_definition(generator_label.c_str(), &d, space).kind, FaultKind::none);
        for (uint64_t changes = below(&random, 4); changes > 0; changes--) {
            const Fields &fields = fields_of(d.kind);
            const Field &field = fields.begin()[1 + below(&random, static_cast<uint64_t>(fields.count()) - 1)];
            set_number(&d, field, number(&random));
        }
        const DefinitionFault fault = find_fault(d);
        show(d, fault);
        if (fault.kind != FaultKind::none)
            continue;
        valid++;
        const Layout layout = layout_of(d.generator);
        const int64_t tick = tick_at(layout, layout.epoch_us + 1);
        ASSERT_EQ(find_layout_fault(layout), LayoutFault::none);
        ASSERT_GE(start_of(layout, largest(layout.time_bits)), layout.epoch_us);
        ASSERT_EQ(tick, layout.tick_us == 1 ? 1 : 0);
    }
    EXPECT_GT(valid, 100);
}

TEST(Fuzz, ShortForms) {
    Random random(20261128);
    for (int round = 0; round < rounds; round++) {
        std::string text(short_form_width, '0');
        write_short_form(static_cast<int64_t>(random() >> 1), text.data());
        text = changed(&random, text);
        const std::unique_ptr<char[]> bytes(new char[text.size()]); // without a NUL, as a text of PostgreSQL
        memcpy(bytes.get(), text.data(), text.size());
        const int64_t id = read_short_form(bytes.get(), text.size());
        ASSERT_GE(id, no_id);
    }
}

// Layouts that are valid, and UUIDs of any program.
TEST(Fuzz, Uuids) {
    Random random(20261128);
    int valid = 0;
    for (int round = 0; round < rounds; round++) {
        Layout layout = {static_cast<int64_t>(below(&random, 1u << 30)), number(&random), 0, 0, 0, 0, false, false};
        for (int32_t *bits : {&layout.time_bits, &layout.datacenter_bits, &layout.worker_bits, &layout.sequence_bits})
            *bits = static_cast<int32_t>(below(&random, 32)) - 1;
        if (find_layout_fault(layout) != LayoutFault::none)
            continue;
        valid++;
        const Uuid uuid = {random(), random()};
        ASSERT_GE(id_of(layout, uuid), no_id);
        const auto id = static_cast<int64_t>(random() & static_cast<uint64_t>(largest(id_bits(layout))));
        ASSERT_EQ(id_of(layout, uuid_of(layout, id, random())), id);
    }
    EXPECT_GT(valid, 100);
}

TEST(Fuzz, Keys) {
    Random random(20261128);
    const auto cipher = [](const CipherBlock &block) {
        CipherBlock result = block;
        for (auto &byte : result.bytes)
            byte = static_cast<uint8_t>(byte * 31 + 7);
        return result;
    };
    int valid = 0;
    for (int round = 0; round < rounds / 10; round++) {
        KeyFormat format = {static_cast<int32_t>(number(&random)), static_cast<int32_t>(number(&random))};
        auto versions = static_cast<int32_t>(number(&random));
        if (below(&random, 2) == 0) {
            format = {static_cast<int32_t>(18 + below(&random, 48)), static_cast<int32_t>(below(&random, 12))};
            versions = 1;
        }
        if (!format_is_valid(format, versions))
            continue;
        valid++;
        const auto permutation = permutation_of(format, cipher);
        const auto id = static_cast<int64_t>(random() & static_cast<uint64_t>(largest_id(format)));
        ASSERT_EQ(reveal(format, permutation, conceal(format, permutation, 1, id)), id);
        // What nobody has concealed is revealed, too, as some id.
        const auto value = static_cast<int64_t>(random() & static_cast<uint64_t>(largest_value(format, versions)));
        const int64_t revealed = reveal(format, permutation, std::min(value, largest_value(format, versions)));
        ASSERT_TRUE(revealed >= 0 && revealed <= largest_id(format));
    }
    EXPECT_GT(valid, 100);
}

// Rows of a server that may be no registry.
struct Rows {
    std::vector<std::vector<std::unique_ptr<char[]>>> cells;
    int width;

    int count() const { return static_cast<int>(cells.size()); }
    int columns() const { return width; }
    const char *text(int row, int column) const {
        return cells.at(static_cast<size_t>(row)).at(static_cast<size_t>(column)).get();
    }
};

// Mostly those of a whole answer: a request's number or a word, and numbers.
Rows rows(Random *random, int width, int word) {
    Rows result = {{}, below(random, 16) == 0 ? static_cast<int>(below(random, 12)) : width};
    for (uint64_t count = below(random, 16) == 0 ? below(random, 4) : 1; count > 0; count--) {
        auto &row = result.cells.emplace_back();
        for (int column = 0; column < result.width; column++) {
            std::string text = column == word ? why_names[below(random, std::size(why_names))]
                                              : std::to_string(column == 0 ? 1 : std::abs(number(random) / 2));
            if (column == word && below(random, 2) == 0)
                text = "";
            text = below(random, 8) == 0 ? changed(random, text) : text;
            row.push_back(below(random, 16) == 0 ? nullptr : exactly(text));
        }
    }
    return result;
}

TEST(Fuzz, Answers) {
    Random random(20261128);
    int hellos = 0;
    int grants = 0;
    int blocks = 0;
    for (int round = 0; round < rounds; round++) {
        Hello hello = {};
        if (parse_hello(rows(&random, 4, -1), &hello)) {
            ASSERT_TRUE(hello.fleet > 0 && hello.term > 0 && is_instant(hello.longest) && is_instant(hello.clock));
            hellos++;
        }
        GrantAnswer given = {};
        const Rows of_grant = rows(&random, 8, 1);
        if (parse_grant_answer(of_grant, 0, 7, &given) && given.answer.why == Why::granted) {
            ASSERT_TRUE(is_instant(given.answer.grant.until));
            ASSERT_EQ(given.notes.until_us, given.answer.grant.until);
            grants++;
        }
        BlockReply reply = {};
        const Rows of_block = rows(&random, 6, 0);
        if (parse_block_reply(of_block, 7, &reply) && reply.answer.why == Why::granted) {
            ASSERT_GT(reply.count, 0);
            blocks++;
        }
    }
    EXPECT_GT(std::min({hellos, grants, blocks}), 100);
}

TEST(Fuzz, AnswersOfNoRegistry) {
    const auto one = [](std::initializer_list<const char *> cells) {
        Rows result = {{}, static_cast<int>(cells.size())};
        auto &row = result.cells.emplace_back();
        for (const char *cell : cells)
            row.push_back(cell == nullptr ? nullptr : exactly(cell));
        return result;
    };
    Hello hello = {};
    EXPECT_TRUE(parse_hello(one({"1", "1", "1", "0"}), &hello));
    EXPECT_FALSE(parse_hello(one({"1", "1", "1"}), &hello));
    EXPECT_FALSE(parse_hello(one({"1", "1", "1", "-1"}), &hello));
    EXPECT_FALSE(parse_hello(one({"1", "1", "9223372036854775807", "0"}), &hello));
    EXPECT_FALSE(parse_hello(one({"1", "9223372036854775808", "1", "0"}), &hello));
    EXPECT_FALSE(parse_hello(one({"1x", "1", "1", "0"}), &hello));
    GrantAnswer given = {};
    EXPECT_TRUE(parse_grant_answer(one({"1", nullptr, "3", "0", "9", "f", "1", nullptr}), 0, 7, &given));
    EXPECT_FALSE(parse_grant_answer(one({"2", nullptr, "3", "0", "9", "f", "1", nullptr}), 0, 7, &given));
    EXPECT_FALSE(parse_grant_answer(one({"1", nullptr, nullptr, "0", "9", "f", "1", nullptr}), 0, 7, &given));
    EXPECT_FALSE(parse_grant_answer(one({"1", nullptr, "3", "0", "-9", "f", "1", nullptr}), 0, 7, &given));
    EXPECT_TRUE(parse_grant_answer(one({"1", "strange", "", "", "", "", "1", ""}), 0, 7, &given));
    EXPECT_EQ(given.answer.why, Why::unknown);
    BlockReply reply = {};
    EXPECT_TRUE(parse_block_reply(one({"", "1", "2", "1", "1", ""}), 7, &reply));
    EXPECT_FALSE(parse_block_reply(one({"", "1", "0", "1", "1", ""}), 7, &reply));
    EXPECT_FALSE(parse_block_reply(one({"", "1", "2", "", "1", ""}), 7, &reply));
}

} // namespace
