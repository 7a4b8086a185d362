// What may happen to a fleet, and how often: the choices that are searched. docs/design.md names some.
#pragma once

#include "registry_search.hpp"

namespace uidgen::test {

struct Scenario {
    const char *name;
    const char *size; // size_of()
    uint32_t events;  // that the search must meet
};

inline const Scenario scenarios[] = {
    // Nothing is lost: clocks are wrong by any amount.
    {"MessagesAreLostAndLate", "clocks 0 -4 3, registry_clocks 3 0, clock_step 2, crash 1, repeat 1",
     late_answer_ignored | refused(Why::taken) | answered_repeat | refused(Why::none_free)},
    {"NoClockMatters",
     "whole_calls 1, clocks 0 -3 4, registry_clocks 0 -4 5, clock_step 2, registry_clock_step 1, crash 1",
     refused(Why::ahead) | refused(Why::taken) | answered_repeat},
    {"CopiesAreNewcomers", "whole_calls 1, end 10, crash 1, copy_directory 1, promote_member 1, clone 1, recreate 1",
     refused(Why::taken) | answered_repeat | refused(Why::none_free)},
    {"CommitsAreKept",
     "whole_calls 1, registry_clocks 0 -4 5, clocks 0 -3, switchover 2, crash 1, newcomer 1, clock_step 1",
     newcomer_after_fence | survived_fence | refused(Why::ahead) | fence_by_place},
    {"FailoversAreKept",
     "whole_calls 1, keeps 2, registry_clocks 0 -4 5, clocks 0 4, switchover 2, crash 1, clone 1, clock_step 1",
     refused(Why::ahead) | refused(Why::taken) | answered_repeat | refused(Why::none_free)},
    {"OfTwoClonesOneContinues",
     "whole_calls 1, nodes 1, members 1, registry_clocks 0 -4 5, switchover 2, clone 1, crash 1",
     newcomer_after_fence | survived_fence | refused(Why::ahead) | fence_by_place},
    // Commits are lost with a failover. The registry's clocks, before and after, agree within the bound.
    {"CallsFailOver", "nodes 1, registry_clocks 0 1, failover 1, crash 1, repeat 1",
     late_answer_ignored | fence_by_proof | newcomer_after_fence | survived_fence},
    {"LostCommitsAreFenced", "whole_calls 1, registry_clocks 0 1, failover 1, crash 1, newcomer 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"TheBoundIsTight", "whole_calls 1, nodes 1, registry_clocks 1 0, failover 1, crash 1, registry_clock_step 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"CommitsAreLostAgain", "whole_calls 1, nodes 1, registry_clocks 0 1, failover 2",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    {"MembersClocksAreWrong",
     "whole_calls 1, nodes 1, registry_clocks 0 1, clocks 0 -3 4, failover 1, clock_step 2, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | refused(Why::ahead)},
    {"CopiesInAFence",
     "whole_calls 1, registry_clocks 0 1, members 1, failover 1, copy_directory 1, promote_member 1, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"GrantsAreShorter", "whole_calls 1, nodes 1, short_grants 1, registry_clocks 0 1, failover 2, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    // Commits are lost with a restore.
    {"ABackupIsRestored", "whole_calls 1, nodes 1, registry_clocks 0 1, restore 1, crash 1, newcomer 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"ARegistryIsMadeAnew", "whole_calls 1, registry_clocks 0 1, anew 1, crash 1, newcomer 1",
     fence_by_term | smaller_term_ignored | refused(Why::outdated)},
    {"LossesOfEachKind", "whole_calls 1, nodes 1, registry_clocks 0 1, restore 1, failover 1, anew 1",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    {"ASnapshotWhereNothingIsKept",
     "whole_calls 1, nodes 1, keeps 0, registry_clocks 0 1, put_back 1, newcomer 1, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"ASnapshotAndFence",
     "whole_calls 1, nodes 1, keeps 2, registry_clocks 0 1, put_back_fenced 1, newcomer 1, crash 1",
     newcomer_after_fence | survived_fence | refused(Why::fenced) | refused(Why::taken)},
    {"RowsAreRestoredAndFenced", "nodes 1, keeps 2, restore_running 1, waits 1",
     aborted_by_fence | late_answer_ignored | newcomer_after_fence | survived_fence},
    {"ADumpWhereFailoversAreKept",
     "whole_calls 1, nodes 1, keeps 2, registry_clocks 0 1, restore 1, switchover 1, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"AnewWhereFailoversAreKept", "whole_calls 1, keeps 2, registry_clocks 0 1, anew 1, switchover 1, newcomer 1",
     fence_by_term | smaller_term_ignored | refused(Why::outdated)},
    // Two registries.
    {"TwoRegistriesAreReachable", "whole_calls 1, nodes 1, registry_clocks 0 1, split 1, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"AFormerPrimaryReturns",
     "whole_calls 1, nodes 1, keeps 0, former_ends 1, registry_clocks 0 1, dies 1, returns 1, stop 1",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    {"BackToTheFormerPrimary", "whole_calls 1, nodes 1, registry_clocks 0 1, dies 1, fail_back 1, newcomer 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"BackAndAnotherLoss", "whole_calls 1, registry_clocks 0 1, dies 1, fail_back 1, failover 1",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    {"ALeaderHasItsLockBack", "whole_calls 1, nodes 1, registry_clocks 0 1, dies 1, take_back 1, newcomer 1",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    {"ALeaderHasItsLockBackAndFails", "whole_calls 1, registry_clocks 0 1, dies 1, take_back 1, failover 1",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    // What administrators say.
    {"NothingWasLost",
     "whole_calls 1, nodes 1, registry_clocks 0 1, clocks 0 -3, switchover 1, lift 1, failover 1, clock_step 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"NothingWasLostAndCrashes", "whole_calls 1, registry_clocks 0 1, switchover 1, lift 1, failover 1, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"ALossThenNone",
     "whole_calls 1, nodes 1, end 16, registry_clocks 0 1, clocks 0 -6, failover 1, switchover 1, lift 1, clock_step 1, "
     "newcomer 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"NothingWasLostTwice", "whole_calls 1, nodes 1, keeps 0, registry_clocks 0 1, failover 1, lift 2, stop 2",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"APromiseChanges",
     "whole_calls 1, nodes 1, registry_clocks 0 1, failover 2, promise_failovers 1, promise_restarts 1",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    {"APromiseIsWeakened",
     "whole_calls 1, nodes 1, keeps 2, registry_clocks 0 1, failover 1, switchover 1, promise_failovers 1, "
     "promise_restarts 1",
     fence_by_term | smaller_term_ignored | fence_by_proof | refused(Why::outdated)},
    // Strangers, and wrong lines.
    {"GrantsAreInvented", "whole_calls 1, nodes 1, invent 1, crash 1",
     fence_by_proof | newcomer_after_fence | survived_fence | refused(Why::fenced)},
    {"GrantsAreInventedInAFence", "whole_calls 1, nodes 1, registry_clocks 0 1, invent 1, failover 1",
     fence_by_proof | newcomer_after_fence | survived_fence | fence_by_place},
    {"ALineIsWrong", "whole_calls 1, wrong_line 2, crash 1",
     smaller_term_ignored | refused(Why::other_fleet) | refused(Why::taken) | answered_repeat},
    {"LayoutsOfEqualWidths", "whole_calls 1, layouts 2, crash 1, failover 1",
     refused(Why::layout_differs) | fence_by_proof | newcomer_after_fence | survived_fence},
};

} // namespace uidgen::test
