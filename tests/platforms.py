"""Tests that cannot run on every system: the reason, and their names or folders."""

from __future__ import annotations

import sys

LINUX_ONLY = {
    "names files by bytes that are no text": (
        "tests/scoring/test_score_folder_refusals.py::test_a_part_whose_name_is_not_utf_8_is_named",
    ),
    "Ray forms clusters on Linux": ("tests/engines/",),
    "bounds memory through /proc": (
        "tests/attack/",
        "tests/cli/test_side_files.py::test_pictures_that_unfold_to_more_than_the_limit_are_refused_before_they_are_read",
    ),
    "finds workers through /proc": (
        "tests/serve/test_processes.py",
        "tests/serve/test_draining.py",
        "tests/serve/test_content.py::test_a_worker_that_is_replaced_decides_as_the_others_do",
    ),
    "asks for a folder below /proc": ("tests/report/test_report_files.py::test_a_folder_that_cannot_be_written",),
}
POSIX_ONLY = {
    "limits the size of files by setrlimit": (
        "tests/cli/test_score.py::test_a_real_refusal_of_the_system",
        "tests/storage/test_lock.py::test_a_disk_that_is_full_keeps_nobody_out",
        "reproduction/tests/training/test_interrupted.py::test_a_full_disk_stops_and_the_training_goes_on_later",
    ),
    "reads permissions": (
        "tests/storage/test_run_folder.py::test_a_restart_opens_nothing_to_others",
        "tests/storage/test_writing.py::test_the_files_of_a_folder_keep_their_permissions_and_are_nobody_elses_before",
        "tests/storage/test_writing.py::test_what_takes_the_place_of_a_file_is_open_to_the_same_people",
    ),
    "makes symbolic links": (
        "tests/cli/test_guard.py::test_a_guard_takes_the_place_of_nothing_that_it_is_fitted_on",
        "tests/cli/test_score.py::test_the_input_is_not_overwritten",
        "tests/scoring/test_score_folder.py::test_links_may_lead_elsewhere_but_never_multiply_rows",
        "tests/scoring/test_score_folder_refusals.py::test_an_output_that_links_of_the_input_lead_to_is_refused",
        "tests/scoring/test_score_folder_refusals.py::test_bad_targets_are_refused",
        "tests/storage/test_targets.py::test_what_is_read_is_not_replaced_under_any_name",
        "tests/storage/test_writing.py::test_two_atomic_folders_of_one_name_do_not_mix",
        "reproduction/tests/training/test_refused_networks.py::test_a_network_in_the_wrong_folder_is_refused",
    ),
    "sends SIGKILL": (
        "tests/scoring/test_score_file_stopped.py::test_killed_runs_lose_and_double_nothing",
        "tests/storage/test_lock.py::test_a_killed_holder_is_followed_at_once",
        "tests/storage/test_writing.py::test_the_next_run_removes_what_a_killed_one_left",
        "tests/torch/test_predicting.py::test_a_run_that_was_killed_resumes",
        "reproduction/tests/training/test_interrupted.py::test_a_killed_training_goes_on_exactly",
    ),
    "sends signals to itself": ("tests/serve/test_supervisor.py",),
    "uses fcntl": (
        "tests/storage/test_writing.py::test_bytes_of_a_folder_are_put_on_disk_through_files_open_for_writing",
    ),
    "forks": ("tests/torch/test_distributed.py",),
    "kills a process": (
        "reproduction/tests/pipeline/test_stopped.py::test_a_run_killed_without_warning_goes_on_and_ends_with_the_same_numbers",
    ),
}


def reason_to_skip(name: str, system: str = sys.platform, /) -> str | None:
    """Why the test of that name cannot run on a system; None where it can."""
    lacking = ({} if system == "linux" else LINUX_ONLY) | (POSIX_ONLY if system == "win32" else {})
    return next((reason for reason, names in lacking.items() if name.startswith(names)), None)
