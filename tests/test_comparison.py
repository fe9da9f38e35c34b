import pytest
import study as made

from fsexp import comparison

COMMON = {"compiler": "gcc (Debian 12.2.0-14) 12.2.0", "configuration": "common", "fragments": 0}
DEBIAN = {
    "release": "6.1.0-57-amd64",
    "source": {
        "kind": "debian",
        "suite": "bookworm",
        "package": "linux-image-amd64",
        "packages": [{"package": "linux-image-6.1.0-57-amd64", "version": "6.1.192-3", "sha256": "7" * 64}],
    },
}
GCC = 'CONFIG_CC_VERSION_TEXT="gcc (Debian 12.2.0-14) 12.2.0"\n'


def read(folder, kernels, releases=None):
    """Kernels of a study: label -> (kernel.json, configuration)."""
    study = made.Results(folder, kernels=tuple(kernels))
    for label, (document, config) in kernels.items():
        study.kernel(label, document, config)
    rows = [{"kernel": label, "release": release} for label, release in (releases or {}).items()]
    return comparison.read(study.results, kernels, rows)


def test_the_order_of_kernels(tmp_path):
    kernels = {
        "newest": ({}, None),
        "broken 3.0": ({"unavailable": "It does not build.", "outcome": "build-failed"}, None),
        "mystery": ({}, None),
        "b": ({"release": "6.1.0-57-amd64"}, None),
        "a": ({"release": "6.12.0"}, None),
        "old": ({"release": "9.9"}, None),
    }
    # What runs reported counts before what kernel.json says.
    found = read(tmp_path, kernels, {"newest": "7.3.4+deb13-amd64", "old": "2.6.39.4", "a": None})
    assert [kernel.label for kernel in found] == ["old", "broken 3.0", "b", "a", "newest", "mystery"]


@pytest.mark.parametrize(
    ("document", "origin"),
    [
        (DEBIAN, "Debian bookworm, linux-image-6.1.0-57-amd64 6.1.192-3"),
        ({"source": {"kind": "debian", "suite": "sid", "package": "linux-source"}}, "Debian sid, linux-source"),
        ({"release": "3.2.7", "source": {"kind": "tarball", "sha256": "a" * 64}}, "tarball of 3.2.7"),
        ({"source": {"kind": "tarball", "sha256": "a" * 64, "patches": ["b"]}}, f"tarball {'a' * 12}, 1 patch"),
        ({"source": {"kind": "tree", "sha256": "c" * 64, "patches": ["b", "d"]}}, f"source tree {'c' * 12}, 2 patches"),
        ({"source": {"kind": "git", "commit": "0123456789abcdef"}}, "git commit 0123456789ab"),
        ({"source": {"kind": "image", "file": "/some/where/bzImage"}}, "image bzImage"),
        ({}, "not known"),
    ],
)
def test_where_a_kernel_is_from(tmp_path, document, origin):
    assert read(tmp_path, {"k": (document, None)})[0].origin == origin


def test_what_is_known_of_a_kernel_that_was_built(tmp_path):
    build = COMMON | {
        "binutils": "GNU ld 2.40",
        "adaptations": ["no-pie"],
        "options_lacking": ["CONFIG_X"],
        "fragments": 2,
    }
    (found,) = read(tmp_path, {"k": ({"source": {"kind": "tarball"}, "build": build}, 'CONFIG_CC_VERSION_TEXT="cc"\n')})
    assert found.configured == "the common configuration, with 2 fragments"
    assert (found.compiler, found.binutils) == ("gcc (Debian 12.2.0-14) 12.2.0", "GNU ld 2.40")
    assert (found.adaptations, found.lacking) == (("no-pie",), ("CONFIG_X",))


def test_what_is_known_of_a_kernel_that_was_not(tmp_path):
    kernels = {"a": (DEBIAN, GCC), "b": (DEBIAN, "CONFIG_HZ=250\n"), "c": ({"source": {"kind": "image"}}, None)}
    found = {kernel.label: kernel for kernel in read(tmp_path, kernels)}
    assert found["a"].compiler == "gcc (Debian 12.2.0-14) 12.2.0"
    assert found["b"].compiler is None and found["c"].options is None
    assert [found[label].configured for label in "abc"] == ["Debian's", "Debian's", "by whoever built it"]


def built(release, **changes):
    return {"release": release, "source": {"kind": "tarball"}, "build": COMMON | changes}


BOTH = "These kernels differ in configuration and compiler too, not in version alone"
ALONE = "These kernels differ in {} too, not in version alone"


@pytest.mark.parametrize(
    ("kernels", "sentence"),
    [
        # By the common configuration and one compiler, whatever their versions have of it.
        ([(built("3.2"), "CONFIG_A=y\n"), (built("6.1"), "CONFIG_B=y\n")], ""),
        ([(built("3.2"), ""), (built("6.1", compiler="gcc (GCC) 9.5.0"), "")], ALONE.format("compiler")),
        # The same compiler by another name.
        ([(built("3.2"), ""), (built("6.1", compiler="gcc-12 (Debian 12.2.0-14) 12.2.0"), "")], ""),
        ([(built("3.2"), "CONFIG_A=y\n"), (DEBIAN, GCC)], ALONE.format("configuration")),
        ([(built("3.2"), "CONFIG_A=y\n"), (DEBIAN, 'CONFIG_CC_VERSION_TEXT="gcc (x) 9"\n')], BOTH),
        ([(built("3.2"), "A"), (built("6.1", configuration="own"), "CONFIG_B=y\n")], ALONE.format("configuration")),
        # One kernel of Debian under two names.
        ([(DEBIAN, GCC), (DEBIAN, GCC)], ""),
        (
            [(DEBIAN, GCC), (DEBIAN, GCC + "CONFIG_A=y\n")],
            "These kernels have the same release, and differ in configuration",
        ),
        # What nobody knows is not called a difference.
        (
            [(DEBIAN, "CONFIG_A=y\n"), (DEBIAN | {"release": "6.12.1"}, "")],
            "These kernels differ in configuration and may differ in compiler too, not in version alone",
        ),
        (
            [(built("3.2", fragments=1), "CONFIG_A=y\n"), (built("6.1", fragments=1), "CONFIG_B=y\n")],
            "These kernels may differ in configuration too, not in version alone",
        ),
        ([(built("3.2"), ""), (built("6.1", fragments=1), "CONFIG_B=y\n")], ALONE.format("configuration")),
        # Kernels that are not there are compared with nothing.
        ([(built("3.2"), ""), ({"unavailable": "No suite has it."}, None)], ""),
        ([(DEBIAN, GCC)], ""),
    ],
)
def test_what_else_differs_is_said(tmp_path, kernels, sentence):
    found = read(tmp_path, {f"k{number}": one for number, one in enumerate(kernels)})
    assert comparison.caution(found) == sentence


@pytest.mark.parametrize(
    ("values", "text"),
    [("yyyyy", "a to e"), ("ynyyn", "a, c, d"), ("yyyny", "a to c, e"), ("nnnnn", ""), ("nynyn", "b, d")],
)
def test_ranges_of_kernels(values, text):
    assert comparison.ranges(values, "abcde", "y") == text


def test_descriptions_that_are_no_such_thing(tmp_path):
    study = made.Results(tmp_path, kernels=("a", "b", "c"))
    study.kernel("a", {"release": 7, "source": [], "build": "x"}, "")
    (study.results / "kernels" / "a" / "config").write_bytes(b"CONFIG_A=\xff\n\x00")
    study.kernel("b", {})
    (study.results / "kernels" / "b" / "kernel.json").write_text("{")
    found = {kernel.label: kernel for kernel in comparison.read(study.results, "abc", [])}
    assert (found["a"].release, found["a"].origin, found["a"].problem) == (None, "not known", "")
    assert found["b"].problem.startswith("kernel.json cannot be read: ")
    assert found["c"].problem == "not recorded"
