// Definitions: their text, and which ones are valid. parse_definition() and print_definition() undo each other.
#include "definition_text.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace uidgen::core;

namespace {

const std::string js53 =
    "generator preset=\"js53\" epoch=2026-01-01T00:00:00Z tick_us=1000000 time_bits=32 datacenter_bits=0 worker_bits=5 "
    "sequence_bits=16 sequence_first=false backup_worker=true lease_ms=1000 max_ahead_ms=2000 when_full=backup "
    "when_back=backup tolerance_ms=1000 spread=false worker_policy=disposable worker_number=null datacenter_id=null own_pool=false "
    "mode=snowflake boost_power=3 padding_factor=50 schedule_ms=null when_ring_empty=pad "
    "max_staleness_ms=5000 created=2026-11-26T19:55:00.123456Z is_default=true";
const std::string orders =
    "segment name=\"orders\" step=null max_step=null registry_name=null fleet=null increment=null";
const std::string attached = "segment name=\"a \"\"b\"\"\" step=10 max_step=1000 registry_name=\"null\" fleet=7 "
                             "increment=-3";
const std::string key = "key id=9223372036854775807";
const std::vector<std::string> valid = {js53, orders, attached, key};

struct Parsed {
    explicit Parsed(const std::string &text) : source(text), space(text.size() + 1) {
        fault = parse_definition(source.c_str(), &definition, space.data());
    }
    // What the fault points at.
    std::string at() const { return fault.at == nullptr ? "" : std::string(fault.at, fault.size); }
    std::string field() const { return fault.field == nullptr ? "" : fault.field->name; }

    std::string source;
    std::vector<char> space;
    Definition definition;
    DefinitionFault fault;
};

template <typename Print> std::string printed(Print print) {
    std::vector<char> text(print(nullptr, 0) + 1, 'x');
    EXPECT_EQ(print(text.data(), text.size()), text.size() - 1);
    return text.data();
}
std::string text_of(const Definition &d) {
    return printed([&](char *out, size_t size) { return print_definition(d, out, size); });
}
std::string value_of(const Definition &d, const char *word) {
    return printed(
        [&](char *out, size_t size) { return print_value(d, *find_field(fields_of(d.kind), word), out, size); });
}

std::string with(const std::string &text, const std::string &from, const std::string &to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return std::string(text).replace(at, from.size(), to);
}
// The text with another value of a field.
std::string with_value(const std::string &text, const std::string &word, const std::string &value) {
    const size_t at = text.find(" " + word + "=") + word.size() + 2;
    return text.substr(0, at) + value + text.substr(std::min(text.find(' ', at), text.size()));
}

void expect_valid(const std::string &text) {
    const Parsed parsed(text);
    EXPECT_EQ(parsed.fault.kind, FaultKind::none) << text << ": " << parsed.field() << " at " << parsed.at();
    EXPECT_EQ(text_of(parsed.definition), text);
}
void expect_fault(const std::string &text, FaultKind kind, const std::string &field, const std::string &at) {
    const Parsed parsed(text);
    EXPECT_EQ(parsed.fault.kind, kind) << text << ": " << parsed.field() << " at " << parsed.at();
    EXPECT_EQ(parsed.field(), field) << text;
    EXPECT_EQ(parsed.at(), at) << text;
}
void expect_rule(const std::string &text, const std::string &field) {
    const Parsed parsed(text);
    EXPECT_EQ(parsed.fault.kind, FaultKind::rule) << text << ": " << parsed.field();
    EXPECT_EQ(parsed.field(), field) << text;
    const std::string hint = parsed.fault.hint != nullptr ? parsed.fault.hint : "of the bound.";
    EXPECT_EQ(hint.back(), '.');
}

TEST(Definition, PrintsWhatItParsed) {
    for (const std::string &text : valid)
        expect_valid(text);
    const Parsed generator(js53);
    const Definition &d = generator.definition;
    EXPECT_STREQ(d.generator.preset, "js53");
    EXPECT_EQ(d.generator.epoch, INT64_C(1767225600000000));
    EXPECT_EQ(d.generator.created, INT64_C(1795722900123456));
    EXPECT_EQ(static_cast<WhenFull>(d.generator.when_full), WhenFull::backup);
    EXPECT_EQ(d.generator.worker_number, null_number);
    EXPECT_EQ(d.generator.is_default, 1);
    const Parsed segment(attached);
    const SegmentDefinition &s = segment.definition.segment;
    EXPECT_EQ(s.increment, -3);
    EXPECT_STREQ(s.registry_name, "null"); // a text, not the word
    EXPECT_STREQ(s.name, "a \"b\"");
}

// A text may have its words in another order, but no more spaces. What is printed has them in that of the list.
TEST(Definition, AnyOrder) {
    std::mt19937 random(1);
    for (const std::string &text : {js53, orders, key}) {
        std::vector<std::string> words;
        for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1))
            words.push_back(text.substr(at, text.find(' ', at + 1) - at));
        std::shuffle(words.begin(), words.end(), random);
        std::string other = text.substr(0, text.find(' '));
        for (const std::string &word : words)
            other += word;
        const Parsed parsed(other);
        EXPECT_EQ(parsed.fault.kind, FaultKind::none) << parsed.field();
        EXPECT_EQ(text_of(parsed.definition), text);
        for (size_t at = 0; at < other.size(); at = other.find(' ', at + 1)) {
            std::string spaced = other;
            expect_fault(spaced.insert(at, " "), at == 0 ? FaultKind::kind : FaultKind::unknown, "", "");
        }
        expect_fault(other + " ", FaultKind::unknown, "", "");
    }
}

TEST(Definition, NamesOfAnyBytes) {
    for (const std::string &name : {std::string("\""), std::string("\"\""), std::string("a=b c=d"), std::string(" "),
                                    std::string("\\'\n\t"), std::string("\xC3\xA9\xE4\xBD\xA0\xFF"),
                                    std::string(63, 'x'), std::string(64, '"'), std::string(2500, ' ')}) {
        std::string quoted = "\"";
        for (const char c : name)
            quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
        const std::string text = with(orders, "\"orders\"", quoted + "\"");
        expect_valid(text);
        const Parsed parsed(text);
        EXPECT_EQ(parsed.definition.segment.name, name);
    }
    EXPECT_EQ(Parsed(with(orders, "\"orders\"", "\"" + std::string(2501, ' ') + "\"")).fault.kind, FaultKind::value);
}

TEST(Definition, Faults) {
    expect_fault("", FaultKind::kind, "", "");
    expect_fault("Generator x=1", FaultKind::kind, "", "Generator");
    expect_fault("generators", FaultKind::kind, "", "generators");
    expect_fault(" key id=1", FaultKind::kind, "", "");
    expect_fault(js53 + " shape=round", FaultKind::unknown, "", "shape");
    expect_fault(js53 + " default", FaultKind::unknown, "", "default");
    expect_fault(js53 + " mode", FaultKind::unknown, "", "mode");
    expect_fault(js53 + " =1", FaultKind::unknown, "", "");
    expect_fault(key + " ; DROP", FaultKind::unknown, "", ";");
    expect_fault(key + "\n", FaultKind::value, "id", "9223372036854775807\n");
    expect_fault(js53 + " mode=cached", FaultKind::repeated, "mode", "mode");
    expect_fault("key", FaultKind::missing, "id", "");
    for (const std::string &text : valid)
        for (const Field &field : fields_of(Parsed(text).definition.kind)) {
            const std::string word = field.name;
            if (field.type == FieldType::text)
                continue;
            const size_t at = text.find(" " + word + "=");
            const size_t next = text.find(' ', at + 1);
            expect_fault(text.substr(0, at) + (next == std::string::npos ? "" : text.substr(next)), FaultKind::missing,
                         word, "");
        }
}

TEST(Definition, Values) {
    const auto refuses = [](const std::string &text, const std::string &word,
                            std::initializer_list<const char *> values) {
        for (const char *value : values)
            expect_fault(with_value(text, word, value), FaultKind::value, word, value);
    };
    refuses(js53, "tick_us",
            {"", "0", "-1", "3600000001", "01", "+1", "1e3", "1.0", "\"1\"", "null", "0x10", "-", "9223372036854775807",
             "9223372036854775808", "99999999999999999999", "-9223372036854775808"});
    refuses(js53, "spread", {"", "0", "t", "True", "null", "falsetrue"});
    refuses(js53, "when_full", {"", "hold", "waits", "wai", "'wait'", "null"});
    refuses(js53, "worker_number", {"", "-1", "NULL", "nul", "2147483648"});
    refuses(js53, "epoch",
            {"",
             "2026",
             "2026-01-01",
             "2026-01-01T00:00:00",

             "2026-02-29T00:00:00Z",
             "2026-13-01T00:00:00Z",
             "2026-00-01T00:00:00Z",
             "2026-01-00T00:00:00Z",
             "2026-04-31T00:00:00Z",
             "2026-01-01T24:00:00Z",
             "2026-01-01T00:60:00Z",
             "2026-01-01T00:00:60Z",
             "2026-01-01T00:00:00.5Z",
             "2026-01-01T00:00:00.000000Z",
             "2026-01-01T00:00:00.1234567Z",
             "2026-01-01T00:00:00+00",
             "2026-1-1T0:0:0Z",
             "1969-12-31T23:59:59.999999Z",
             "10889-08-02T05:31:50.656001Z",
             "99999-01-01T00:00:00Z",
             "infinity",
             "-infinity",
             "null",
             "2026-01-01T00:00:00ZZ",
             "99999999999999999999-01-01T00:00:00Z"});
    refuses(js53, "preset", {"", "js53", "\"\"", "\"js53\"x", "null", "js\"53\""});
    refuses(attached, "registry_name", {"", "x", "\"\"", "\"x\"x\""});
    // A quote that is not closed takes the rest.
    expect_fault(with(js53, "2026-01-01T", "2026-01-01 "), FaultKind::value, "epoch", "2026-01-01");
    expect_fault("segment name=\"a b", FaultKind::value, "name", "\"a b");
    expect_fault("segment name=\"a\"\"", FaultKind::value, "name", "\"a\"\"");
    expect_fault("segment name=\"", FaultKind::value, "name", "\"");
    refuses(key, "id", {"", "0", "-1", "9223372036854775808"});
    for (const char *epoch :
         {"1970-01-01T00:00:00Z", "2024-02-29T23:59:59.999999Z", "2000-02-29T00:00:00.000001Z", "2100-02-28T00:00:00Z",
          "2100-03-01T00:00:00Z", "1999-12-31T23:59:59Z", "2010-11-04T01:42:54.657000Z"})
        expect_valid(with_value(js53, "epoch", epoch));
    for (const char *tick : {"1", "7", "999999", "1000001", "1234567"})
        expect_valid(with_value(with_value(js53, "tick_us", tick), "time_bits", "30"));
    expect_valid(with_value(with_value(js53, "tick_us", "3600000000"), "time_bits", "20"));
    expect_valid(with_value(js53, "created", "10889-08-02T05:31:50.656000Z"));
    refuses(with_value(js53, "mode", "cached"), "created", {"10889-08-02T05:31:50.656001Z"});
}

// Each bound of each number of the list is valid as far as the rules go, and what lies beyond is not.
TEST(Definition, BoundsOfEachField) {
    for (const std::string &text : valid) {
        const Parsed parsed(text);
        for (const Field &field : fields_of(parsed.definition.kind)) {
            if (field.type == FieldType::text)
                continue;
            for (const int64_t bound : {field.least, field.most}) {
                Definition d = parsed.definition;
                set_number(&d, field, bound);
                const DefinitionFault fault = find_fault(d);
                EXPECT_TRUE(fault.kind == FaultKind::none || fault.kind == FaultKind::rule) << field.name;
                const Parsed again(text_of(d));
                EXPECT_EQ(again.fault.kind, fault.kind) << field.name;
                EXPECT_EQ(number_in(&again.definition, field), bound) << field.name;
            }
            for (const bool below : {true, false}) {
                int64_t beyond = 0;
                Definition d = parsed.definition;
                if (below ? __builtin_sub_overflow(field.least, 1, &beyond)
                          : __builtin_add_overflow(field.most, 1, &beyond))
                    continue;
                set_number(&d, field, beyond);
                const DefinitionFault fault = find_fault(d);
                if (field.nullable && beyond == null_number)
                    continue;
                EXPECT_EQ(fault.kind, FaultKind::value) << field.name;
                EXPECT_EQ(fault.field, &field);
                EXPECT_EQ(value_of(d, field.name), std::to_string(beyond));
            }
            Definition d = parsed.definition;
            set_null(&d, field);
            EXPECT_EQ(find_fault(d).kind == FaultKind::value, !field.nullable) << field.name;
        }
    }
}

// The list is of each member of the structs, once.
TEST(Definition, FieldsAreTheMembers) {
    const auto covers = [](DefinitionKind kind, size_t size) {
        std::set<size_t> offsets;
        std::set<std::string> words;
        for (const Field &field : fields_of(kind)) {
            offsets.insert(field.offset);
            words.insert(field.name);
            EXPECT_EQ(find_field(fields_of(kind), field.name), &field);
            EXPECT_EQ(field.offset % sizeof(int64_t), 0U);
        }
        EXPECT_EQ(offsets.size(), size / sizeof(int64_t));
        EXPECT_EQ(words.size(), offsets.size());
    };
    covers(DefinitionKind::generator, sizeof(GeneratorDefinition));
    covers(DefinitionKind::segment, sizeof(SegmentDefinition));
    covers(DefinitionKind::key, sizeof(KeyDefinition));
    EXPECT_EQ(fields_of(DefinitionKind::none).begin(), fields_of(DefinitionKind::none).end());
    EXPECT_EQ(find_fault(Definition{}).kind, FaultKind::kind);
    EXPECT_EQ(find_field(fields_of(DefinitionKind::key), "i"), nullptr);
    EXPECT_EQ(find_field(fields_of(DefinitionKind::key), "id2"), nullptr);
}

TEST(Definition, Rules) {
    const auto replaced = [](std::string text, std::initializer_list<std::pair<const char *, const char *>> values) {
        for (const auto &value : values)
            text = with_value(text, value.first, value.second);
        return text;
    };
    expect_rule(replaced(js53, {{"sequence_bits", "31"}}), "time_bits");
    expect_rule(replaced(js53, {{"worker_bits", "0"}}), "worker_bits");
    expect_rule(replaced(js53, {{"time_bits", "47"}, {"sequence_bits", "1"}}), "time_bits");
    expect_rule(replaced(js53, {{"lease_ms", "2001"}}), "lease_ms");
    expect_rule(replaced(js53, {{"backup_worker", "false"}}), "backup_worker");
    expect_rule(replaced(js53, {{"backup_worker", "false"}, {"when_full", "wait"}}), "backup_worker");
    expect_valid(replaced(js53, {{"backup_worker", "false"}, {"when_full", "wait"}, {"when_back", "error"}}));
    expect_rule(replaced(js53, {{"worker_policy", "static"}}), "worker_number");
    expect_rule(replaced(js53, {{"worker_policy", "static"}, {"worker_number", "16"}}), "worker_number");
    expect_valid(replaced(js53, {{"worker_policy", "static"}, {"worker_number", "15"}}));
    expect_valid(replaced(js53, {{"worker_number", "99"}})); // not used
    expect_rule(replaced(js53, {{"datacenter_id", "16"}}), "datacenter_id");
    expect_valid(replaced(js53, {{"datacenter_id", "15"}}));
    expect_rule(replaced(js53, {{"datacenter_bits", "2"}, {"datacenter_id", "4"}}), "datacenter_id");

    const std::string cached = replaced(js53, {{"mode", "cached"},
                                               {"when_full", "borrow"},
                                               {"when_back", "hold"},
                                               {"tolerance_ms", "null"},
                                               {"lease_ms", "16000"},
                                               {"max_ahead_ms", "32000"}});
    expect_valid(cached);
    expect_valid(replaced(cached, {{"boost_power", "5"}}));
    expect_rule(replaced(cached, {{"boost_power", "6"}}), "boost_power");
    const std::string narrow = replaced(cached, {{"tick_us", "1"}, {"sequence_bits", "0"}, {"max_ahead_ms", "600000"}});
    expect_valid(replaced(narrow, {{"boost_power", "20"}}));
    expect_rule(replaced(cached, {{"max_staleness_ms", "1999"}}), "max_staleness_ms");
    expect_valid(replaced(cached, {{"max_staleness_ms", "2000"}}));
    for (const auto &other : {std::make_pair("when_full", "wait"), std::make_pair("when_back", "error"),
                              std::make_pair("tolerance_ms", "5"), std::make_pair("spread", "true")})
        expect_rule(replaced(cached, {other}), "mode");

    expect_valid(replaced(orders, {{"step", "5"}}));
    expect_valid(replaced(orders, {{"max_step", "5"}}));
    expect_valid(replaced(orders, {{"step", "5"}, {"max_step", "5"}}));
    expect_rule(replaced(orders, {{"step", "5"}, {"max_step", "4"}}), "max_step");
    expect_rule(replaced(orders, {{"registry_name", "\"x\""}}), "registry_name");
    expect_rule(replaced(orders, {{"fleet", "7"}}), "registry_name");
    expect_rule(replaced(orders, {{"increment", "1"}}), "registry_name");
    expect_rule(with_value(attached, "increment", "0"), "increment");
}

TEST(Definition, Meaning) {
    const Parsed parsed(js53);
    const GeneratorDefinition &g = parsed.definition.generator;
    EXPECT_TRUE(same_layout(layout_of(g), {INT64_C(1767225600000000), 1000000, 32, 0, 5, 16, false, true}));
    const ClockPolicy policy = policy_of(g);
    EXPECT_EQ(policy.end, INT64_C(1) << 32);
    EXPECT_EQ(policy.lease, 1);
    EXPECT_EQ(policy.max_ahead, 2);
    EXPECT_EQ(policy.tolerance, 1);
    EXPECT_EQ(policy.spread.count, 0U);
    Parsed other(with_value(with_value(js53, "spread", "true"), "tolerance_ms", "null"));
    EXPECT_EQ(policy_of(other.definition.generator).tolerance, no_limit);
    EXPECT_EQ(policy_of(other.definition.generator).spread.count, 3000U);
    other.definition.generator.lease_ms = 1; // shorter than a tick
    EXPECT_EQ(policy_of(other.definition.generator).lease, 1);
    const CachedConfig cached = cached_of(g);
    EXPECT_FALSE(cached.on);
    EXPECT_EQ(cached.size, UINT64_C(1) << 19);
    EXPECT_EQ(cached.threshold, UINT64_C(1) << 18);
    EXPECT_EQ(cached.schedule_us, 0);
    EXPECT_EQ(cached.fresh_us, 2500000);
    EXPECT_EQ(cached.when_empty, WhenRingEmpty::pad);
}

TEST(Definition, Allowed) {
    const auto allowed = [](DefinitionKind kind, const char *word) {
        return printed(
            [&](char *out, size_t size) { return print_allowed(*find_field(fields_of(kind), word), out, size); });
    };
    EXPECT_EQ(allowed(DefinitionKind::generator, "time_bits"), "Use a number from 1 to 47.");
    EXPECT_EQ(allowed(DefinitionKind::segment, "step"), "Use a number from 1 to 1099511627776, or null.");
    EXPECT_EQ(allowed(DefinitionKind::generator, "spread"), "Use one of 'false', 'true'.");
    EXPECT_EQ(allowed(DefinitionKind::generator, "when_back"), "Use one of 'hold', 'wait', 'backup', 'error'.");
    for (const DefinitionKind kind : {DefinitionKind::generator, DefinitionKind::segment, DefinitionKind::key})
        for (const Field &field : fields_of(kind))
            EXPECT_EQ(allowed(kind, field.name).back(), '.');
    // A choice or a time that is out of its bounds shows as a number.
    const Parsed parsed(js53);
    Definition d = parsed.definition;
    d.generator.when_full = -1;
    d.generator.epoch = -1;
    EXPECT_EQ(value_of(d, "when_full"), "-1");
    EXPECT_EQ(value_of(d, "epoch"), "-1");
    EXPECT_EQ(value_of(d, "worker_number"), "null");
    EXPECT_EQ(value_of(d, "preset"), "\"js53\"");
}

// A buffer that is too small holds the beginning.
TEST(Definition, ShortBuffers) {
    const Parsed parsed(js53);
    for (size_t size = 0; size <= js53.size() + 1; size++) {
        std::vector<char> out(size);
        EXPECT_EQ(print_definition(parsed.definition, out.data(), size), js53.size());
        if (size > 0) {
            EXPECT_EQ(js53.substr(0, size - 1), out.data());
        }
    }
}

// Valid definitions with values at random survive the way through their text.
TEST(Definition, RandomRoundTrips) {
    std::mt19937_64 random(2);
    const auto below = [&random](uint64_t count) { return count == 0 ? random() : random() % count; };
    for (int round = 0; round < 20000; round++) {
        Definition d = {};
        d.kind = static_cast<DefinitionKind>(1 + below(3));
        std::string name;
        for (uint64_t i = 0; i <= below(9); i++)
            name += "\"= ax\xE4\n'"[below(8)];
        for (const Field &field : fields_of(d.kind)) {
            if (field.type == FieldType::text)
                field_in<const char *>(&d, field) = field.nullable && below(2) == 0 ? nullptr : name.c_str();
            else if (field.nullable && below(3) == 0)
                set_null(&d, field);
            else
                set_number(&d, field,
                           static_cast<int64_t>(
                               static_cast<uint64_t>(field.least) +
                               (below(static_cast<uint64_t>(field.most) - static_cast<uint64_t>(field.least) + 1) >>
                                (below(2) * below(40)))));
        }
        const std::string text = text_of(d);
        const Parsed parsed(text);
        EXPECT_TRUE(parsed.fault.kind == FaultKind::none || parsed.fault.kind == FaultKind::rule)
            << text << ": " << parsed.field();
        EXPECT_EQ(parsed.fault.kind, find_fault(d).kind);
        EXPECT_EQ(text_of(parsed.definition), text);
    }
}

// Whatever the text: no crash, and what is accepted prints as a text with the same meaning.
TEST(Definition, DamagedTexts) {
    std::mt19937 random(3);
    const std::string alphabet = "\"\"= =19-T:.Zaelnu\n\xFF";
    int accepted = 0;
    for (int round = 0; round < 100000; round++) {
        std::string text = valid[random() % valid.size()];
        for (uint32_t i = 0; i <= random() % 4; i++) {
            const size_t at = random() % (text.size() + 1);
            const size_t length = random() % 3 == 0 ? random() % 40 : random() % 2;
            text.replace(at, length, random() % 3 == 0 ? "" : std::string(1, alphabet[random() % alphabet.size()]));
        }
        const Parsed parsed(text);
        if (parsed.fault.kind != FaultKind::none)
            continue;
        accepted++;
        EXPECT_EQ(text_of(parsed.definition).size(), text.size()) << text;
        const Parsed again(text_of(parsed.definition));
        EXPECT_EQ(again.fault.kind, FaultKind::none) << text;
        EXPECT_EQ(text_of(again.definition), text_of(parsed.definition));
    }
    EXPECT_GT(accepted, 100);
}

} // namespace
