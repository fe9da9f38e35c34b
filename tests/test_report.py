import json
import re
import shutil
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
import study as made

from fsexp import calibration, display, report, stats
from fsexp.errors import UserError

VOID = {"meta", "link", "br", "img", "hr", "input"}
SCOPES = {"col", "row"}


class Page(HTMLParser):
    """A report as a test looks at it: well nested, with its text, links, tables and names."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.names, self.tables = [], [], [], []
        self.tags, self.text = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        self.names += [found["id"]] if "id" in found else []
        if tag == "a":
            self.links.append(found["href"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style",):
            self.text.append(data)
            if {"td", "th"} & set(self.open):
                self.tables[-1][-1][-1] += data

    def words(self):
        return " ".join("".join(self.text).split())

    def table(self, start):
        """The rows of the first table whose caption starts so; cells with single spaces."""
        captions = [index for index, (tag, _) in enumerate(self.tags) if tag == "caption"]
        assert len(captions) == len(self.tables)
        for rows, caption in zip(self.tables, self.captions(), strict=True):
            if caption.startswith(start):
                return [[" ".join(cell.split()) for cell in row] for row in rows]
        raise AssertionError(start)

    def captions(self):
        return [" ".join(text.split()) for text in self._captions]

    _captions = ()


def page(text):
    Page._captions = [re.sub(r"&#?\w+;", "?", one) for one in re.findall(r"<caption>(.*?)</caption>", text, re.S)]
    return Page(text)


def test_the_figures_of_a_whole_study(tmp_path):
    shown = page(made.full(tmp_path).render())
    table = shown.table("create, virtual seconds")
    assert table[0] == ["kernel", "ext4", "btrfs"]
    # 99, 100, 101 ms: median 0.1, spread 2/100; 126..128: 2/127; 244..246: 2/245.
    assert table[1] == [
        "debian-5.10",
        "0.1000 s ratio 1.00 spread 2.0 % seeds ok: 3 of 3",
        "0.1500 s ratio 1.00 spread 1.3 % seeds ok: 3 of 3",
    ]
    assert table[2] == [
        "debian-6.1",
        "0.1270 s ratio 1.27 spread 1.6 % seeds ok: 3 of 3",
        "0.2450 s ratio 1.63 spread 0.82 % seeds ok: 3 of 3",
    ]


def test_the_answer_in_sentences(tmp_path):
    words = page(made.full(tmp_path).render()).words()
    assert (
        "Creating 5,000 files takes 1.50 times as long on btrfs as on ext4 with debian-5.10 "
        "(0.1500 s against 0.1000 s, virtual seconds); 1.93 times with debian-6.1 "
        "(0.2450 s against 0.1270 s)." in words
    )
    assert "Deleting 5,000 files takes 1.50 times as long" in words


def test_the_answer_with_many_kernels_gives_the_extremes(tmp_path):
    words = page(made.full(tmp_path, kernels=("a", "b", "c", "d")).render()).words()
    assert (
        "Creating 5,000 files takes between 1.50 (with a) and 1.93 (with d) times as long on "
        "btrfs as on ext4, over 4 kernels (virtual seconds)." in words
    )


def test_the_answer_with_one_filesystem_compares_kernels(tmp_path):
    words = page(made.full(tmp_path, filesystems=("xfs",)).render()).words()
    assert (
        "Creating 5,000 files on xfs takes 0.1000 s with debian-5.10 (virtual seconds); "
        "0.1270 s with debian-6.1, 1.27 times debian-5.10." in words
    )


def test_the_clock_is_stated(tmp_path):
    words = page(made.full(tmp_path).render()).words()
    assert "Times here are virtual: they count instructions" in words
    assert "Instructions are not cycles." in words
    assert "not to be read as wall time" in words


def test_published_beside_measured(tmp_path):
    shown = page(made.full(tmp_path).render())
    assert "The scale differs: nfiles = 50,000 in what was published, 5,000 here." in shown.words()
    table = shown.table("Published s")
    # 2.462625 s / 50,000 = 49.25 us; 0.150 s / 5,000 = 30 us; 0.245 s / 5,000 = 49 us.
    assert table[1] == [
        "create",
        "btrfs",
        "2.463 s49.3 µs a file",
        "0.1500 s30.0 µs a file",
        "0.2450 s49.0 µs a file",
    ]
    # 2.462625 / 1.449550 = 1.6989; 3.312796 / 0.997946 = 3.3196.
    assert table[3] == ["create", "btrfs / ext4, ratio", "1.70", "1.50", "1.93"]
    assert table[6] == ["delete", "btrfs / ext4, ratio", "3.32", "1.50", "1.93"]


def test_the_same_scale_is_said_too(tmp_path):
    published = made.PUBLISHED | {"scale": {"nfiles": 5000}}
    words = page(made.full(tmp_path, published=(published,)).render()).words()
    assert "The scale is the same: nfiles = 5,000." in words
    assert "The scale differs" not in words


def test_space_used(tmp_path):
    table = page(made.full(tmp_path).render()).table("Used space")
    # 100 blocks of 4096 B are 0.39 MiB, 356 are 1.39 MiB.
    assert table[0] == ["kernel", "filesystem", "after the mount", "create", "delete"]
    assert table[1][2:] == ["0.39 MiB11 inodes", "1.39 MiB11 inodes", "1.39 MiB11 inodes"]


def test_nothing_run_yet(tmp_path):
    shown = page(made.Results(tmp_path).render())
    assert shown.table("create")[1][1] == "missing not run yet seeds ok: 0 of 3"
    assert "Creating 5,000 files on btrfs against ext4: not measured with" in shown.words()
    assert "create-unlink: 12 runs, not run yet" in shown.words()
    assert not [tag for tag, _ in shown.tags if tag == "svg"]


def test_all_runs_failed(tmp_path):
    study = made.Results(tmp_path)
    for one in study.plan["runs"]:
        study.failed(*one["levels"].values(), one["seed"], "no-boot", "It did not boot.")
    shown = page(study.render())
    for row in shown.table("create")[1:]:
        assert row[1:] == ["no-boot It did not boot. seeds ok: 0 of 3"] * 2
    assert shown.table("How the planned runs ended")[1][:2] == ["no-boot", "12"]
    assert len([1 for tag, found in shown.tags if found.get("class") == "failure"]) == 12


def test_one_cell_failed(tmp_path):
    study = made.full(tmp_path)
    for seed in (1, 2, 3):
        study.failed("debian-6.1", "btrfs", seed, "panic", "Attempted to kill init.")
    shown = page(study.render())
    table = shown.table("create")
    assert table[2][2] == "panic Attempted to kill init. seeds ok: 0 of 3"
    assert table[1][2].startswith("0.1500 s")
    assert "not measured with debian-6.1 (btrfs: panic)." in shown.words()
    assert shown.table("Published s")[3] == [
        "create",
        "btrfs / ext4, ratio",
        "1.70",
        "1.50",
        "not measured",
    ]
    # No trace of the figures that the failed runs might have had.
    assert "0.2450" not in shown.words()


def test_the_first_kernel_failed(tmp_path):
    study = made.full(tmp_path)
    for seed in (1, 2, 3):
        study.failed("debian-5.10", "ext4", seed, "timeout", "Too long.")
    cell = page(study.render()).table("create")[2][1]
    assert cell == "0.1270 s ratio not known spread 1.6 % seeds ok: 3 of 3"


def test_one_seed_of_three_failed(tmp_path):
    study = made.full(tmp_path)
    study.failed("debian-6.1", "ext4", 3, "oops", "A page fault.", b"Linux\nBUG: here\n")
    shown = page(study.render())
    # 126 and 127 ms remain: median 126.5, spread 1/126.5.
    assert shown.table("create")[2][1] == ("0.1265 s ratio 1.26 spread 0.79 % seeds ok: 2 of 3 without: oops (1)")
    words = shown.words()
    assert "oops: create-unlink, debian-6.1, ext4, seed 3 A page fault." in words
    assert "BUG: here" in words
    assert "./run fsexp run 'runs/x/k1,f0/3'" in words


def test_one_seed_has_no_spread(tmp_path):
    cell = page(made.full(tmp_path, seeds=(2,)).render()).table("create")[1][1]
    assert cell == "0.0990 s ratio 1.00 spread not known seeds ok: 1 of 1".replace("0.0990", "0.09900")


def test_an_ok_run_without_a_phase(tmp_path):
    study = made.full(tmp_path, seeds=(1,))
    study.ok("debian-6.1", "btrfs", 1, {"create": 5_000_000})
    shown = page(study.render())
    cell = shown.table("delete")[2][2]
    assert cell == "no-result runs/x/k1,f1/1/run.json: no record of the phase delete seeds ok: 0 of 1"
    assert shown.table("How the planned runs ended")[2][:2] == ["no-result", "1"]


def test_failed_operations_are_shown(tmp_path):
    study = made.full(tmp_path, seeds=(1,))
    records = made.whole([made.timed("create", 10**8) | {"errors": 2}, made.timed("delete", 10**8)])
    document = study.document("debian-6.1", "ext4", 1, "ok", None, records)
    study.write("debian-6.1", "ext4", 1, document)
    assert page(study.render()).table("create")[2][1].endswith("2 failed operations")


def test_a_corrupt_result(tmp_path):
    study = made.full(tmp_path, seeds=(1,))
    (study.path("debian-6.1", "ext4", 1) / "run.json").write_text("{")
    shown = page(study.render())
    assert shown.table("create")[2][1].startswith("infrastructure runs/x/k1,f0/1/run.json: ")


def test_foreign_text_comes_out_right(tmp_path):
    kernels = ('6.1<b>&"', "Ядро 7 %", "a_b=c")
    study = made.full(tmp_path, kernels=kernels, title="A & <i>B</i>", question="<u>?")
    console = b"</script><script>alert(1)</script>\r\n\x1b[31m\xff\x00 \xe2\x80\xae end\n\n"
    study.failed('6.1<b>&"', "btrfs", 1, "panic", "<b>bold</b>\x07", console)
    text = study.render()
    shown = page(text)
    assert "<script" not in text and "<b>" not in text and "<i>" not in text
    assert not {"\x1b", "\x00", "\x07", "\u202e"} & set(text)
    assert [row[0] for row in shown.table("create")[1:]] == list(kernels)
    assert "</script><script>alert(1)</script>" in shown.words()
    assert "␛[31m\ufffd␀ [U+202E] end" in shown.words()
    assert "<b>bold</b>␇" in shown.words()


def test_links_lead_to_files(tmp_path):
    study = made.full(tmp_path / "a folder, 7 % & <more>#1?")
    shutil.rmtree(study.path("debian-6.1", "ext4", 2))
    shown = page(study.render())
    outside = [link for link in shown.links if not link.startswith("#")]
    # Four files for each of 11 runs; six tables and the dictionary in two formats.
    assert len(outside) == 44 + 14
    for link in outside:
        parts = urlsplit(link)
        assert parts.scheme == parts.netloc == parts.query == parts.fragment == ""
        assert (study.output / unquote(parts.path)).is_file()
    for link in shown.links:
        if link.startswith("#"):
            assert link[1:] in shown.names


def test_links_are_percent_encoded(tmp_path):
    study = made.Results(tmp_path, seeds=(1,))
    study.plan["runs"][0]["folder"] = "runs/a b%2F#?ж/1"
    study.save_plan()
    study.ok("debian-5.10", "ext4", 1, {"create": 1})
    links = page(study.render()).links
    assert "../runs/a%20b%252F%23%3F%D0%B6/1/console.log" in links


def test_the_page_is_self_contained_and_accessible(tmp_path):
    study = made.full(tmp_path)
    study.failed("debian-6.1", "ext4", 3, "oops", "A page fault.")
    text = study.render()
    shown = page(text)
    assert len(shown.names) == len(set(shown.names))
    tags = [tag for tag, _ in shown.tags]
    assert {"header", "nav", "main", "footer"} <= set(tags)
    assert not {"script", "img", "iframe", "object"} & set(tags)
    assert [found["href"] for tag, found in shown.tags if tag == "link"] == ["data:,"]
    assert "@import" not in text and "url(http" not in text
    assert all(found.get("scope") in SCOPES for tag, found in shown.tags if tag == "th")
    assert tags.count("caption") == tags.count("table") > 5
    assert ("html", {"lang": "en"}) in shown.tags
    assert "#content" in shown.links and "content" in shown.names
    assert tags.count("svg") == 2


def test_rendered_again_it_is_the_same(tmp_path):
    study = made.full(tmp_path)
    first = study.render()
    time.sleep(0.01)
    report.render(study.plan_path, study.tables, study.results, study.output)
    assert (study.output / "index.html").read_text(encoding="utf-8") == first


def test_provenance(tmp_path):
    study = made.full(tmp_path)
    documents = {
        "kernels/a/kernel.json": {
            "format": 1,
            "digest": "a" * 64,
            "release": "6.1.0-49-amd64",
            "source": {
                "kind": "debian",
                "suite": "bookworm",
                "packages": [{"package": "linux-image", "version": "6.1-1", "sha256": "7" * 64}],
            },
            "image": {"sha256": "5" * 64},
            "config": {"sha256": "4" * 64},
            "modules": {"btrfs": {}, "ext4": {}},
        },
        "kernels/b/kernel.json": {"format": 1, "unavailable": "No suite has it."},
        "kernels/c/kernel.json": [],
        "images/x/image.json": {
            "format": 1,
            "digest": "b" * 64,
            "bytes": 1234,
            "command": "mkfs.ext4 -O '^metadata_csum'",
            "label": "ext4 <old>",
            "filesystem": "ext4",
        },
        "userland/e2fsprogs/userland.json": {
            "format": 1,
            "digest": "6" * 64,
            "packages": [{"package": "e2fsprogs", "version": "1.47", "sha256": "8" * 64}],
        },
    }
    for name, document in documents.items():
        path = study.results / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(document))
    shown = page(study.render())
    words = shown.words()
    assert "a: 6.1.0-49-amd64, kind debian, suite bookworm (12 runs)" in words
    assert f"package linux-image 6.1-1: {'7' * 64}" in words
    assert "modules: btrfs, ext4" in words
    assert "b: not available: No suite has it. (0 runs)" in words
    assert "c: kernel.json is not an object" in words
    assert shown.table("Disk images")[1] == [
        "ext4 <old>",
        "mkfs.ext4 -O '^metadata_csum'",
        "1234",
        "b" * 64,
        "12",
    ]
    assert ["e2fsprogs", "1.47", "8" * 64] in shown.table("Packages of")
    assert ["firmware bios-256k.bin", "f" * 64] in shown.table("The virtual machine")
    assert f"Workload core: {'d' * 64} (12 runs)" in words
    assert "qemu-system-x86_64 -name 'a guest'" in words
    assert "console=ttyS0 nokaslr" in words


LADDER = ("debian-6.1", "linux <3.0>", "2.6.39.4", "newest 6.12.1")


def ladder(folder, **options):
    """Four kernels, not in the order of their versions; the second could not be built."""
    study = made.full(folder, kernels=LADDER, **options)
    for kernel, release in zip(LADDER, ("6.1.0-57-amd64", None, "2.6.39.4", "6.12.1"), strict=True):
        study.release(kernel, release)
    for filesystem in study.filesystems:
        for seed in study.seeds:
            study.failed("linux <3.0>", filesystem, seed, "build-failed", "It does not build.")
    study.release("linux <3.0>", None)
    return study


def plots(shown):
    return [found["aria-labelledby"].split()[0] for tag, found in shown.tags if tag == "svg"]


def test_lines_over_the_kernels_in_the_order_of_their_releases(tmp_path):
    text = ladder(tmp_path).render()
    shown = page(text)
    assert plots(shown) == [
        "experiment-1-phase-1-lines-title",
        "experiment-1-phase-1-title",
        "experiment-1-phase-2-lines-title",
        "experiment-1-phase-2-title",
    ]
    svg = ElementTree.fromstring(re.search(r"<svg .*?</svg>", text, re.S)[0])
    texts = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert [one for one in texts if one in LADDER] == ["2.6.39.4", "linux <3.0>", "debian-6.1", "newest 6.12.1"]
    spoken = svg.find("{http://www.w3.org/2000/svg}desc").text
    gaps = "ext4 with linux <3.0> (build-failed); btrfs with linux <3.0> (build-failed)"
    assert f"The lines are broken where there is no value: {gaps}." in spoken
    assert f"No value: {gaps}." in shown.words()
    # Alone before the gap, two after it: two pieces for each filesystem.
    pieces = [path.get("d").count("M") for path in svg.iter("{http://www.w3.org/2000/svg}path") if thick(path)]
    assert pieces == [1, 1, 2, 2]


def thick(path):
    return "--series-" in path.get("style", "") and "stroke-width: 2" in path.get("style", "")


def test_two_kernels_have_bars_and_many_have_lines(tmp_path):
    two = made.full(tmp_path / "two")
    assert plots(page(two.render())) == ["experiment-1-phase-1-title", "experiment-1-phase-2-title"]
    # 13 kernels with 2 filesystems are 26 bars.
    many = made.full(tmp_path / "many", kernels=tuple(f"6.{n}" for n in range(13)), seeds=(1,))
    assert plots(page(many.render())) == ["experiment-1-phase-1-lines-title", "experiment-1-phase-2-lines-title"]


def test_kernels_and_what_they_differ_in(tmp_path):
    study = ladder(tmp_path)
    build = {"compiler": "gcc (Debian) 12.2.0", "configuration": "common", "fragments": 0}
    old = {
        "adaptations": ["no-pie", "compiler-header"],
        "options_lacking": ["CONFIG_A", "CONFIG_B", "CONFIG_C", "CONFIG_D"],
    }
    tarball = {"kind": "tarball", "sha256": "a" * 64}
    study.kernel("2.6.39.4", {"release": "2.6.39.4", "source": tarball, "build": build | old}, "CONFIG_HZ=1000\n")
    study.kernel("linux <3.0>", {"unavailable": "<b>It</b> does not build.", "outcome": "build-failed"})
    packages = [{"package": "linux-image-6.1.0-57-amd64", "version": "6.1.192-3", "sha256": "7" * 64}]
    debian = {"kind": "debian", "suite": "bookworm", "package": "linux-image-amd64", "packages": packages}
    config = 'CONFIG_HZ=250\nCONFIG_LSM="<i>,yama"\nCONFIG_PSI=y\n# CONFIG_KASAN is not set\n'
    study.kernel("debian-6.1", {"release": "6.1.0-57-amd64", "source": debian}, config)
    shown = page(study.render())
    table = shown.table("Where each kernel comes from")
    assert [row[:2] for row in table[1:]] == [
        ["2.6.39.4", "2.6.39.4"],
        ["linux <3.0>", "not known"],
        ["debian-6.1", "6.1.0-57-amd64"],
        ["newest 6.12.1", "6.12.1"],
    ]
    assert table[1][2:] == [
        "tarball of 2.6.39.4",
        "the common configuration",
        "gcc (Debian) 12.2.0",
        "no-pie, compiler-header",
        "4 optionsCONFIG_A, CONFIG_B, CONFIG_C, CONFIG_D",
    ]
    assert table[2][2:] == ["not available: <b>It</b> does not build."]
    assert table[3][2:] == [
        "Debian bookworm, linux-image-6.1.0-57-amd64 6.1.192-3",
        "Debian's",
        "not known",
        "none",
        "nothing was asked for",
    ]
    assert table[4][2:] == ["not recorded"]
    options = shown.table("Options that matter")
    assert options[0] == ["option", "2.6.39.4", "debian-6.1"]
    assert [(row[0].split()[0], *row[1:]) for row in options[1:]] == [
        ("HZtimer", "1000", "250"),
        ("PSIstalls", "not there", "y"),
        ("LSMthe", "not there", "<i>,yama"),
    ]
    words = shown.words()
    assert "Of all 4 options that occur in these configurations 3 have different values; 1 more is off in one" in words
    assert "Not compared, for want of a configuration: linux <3.0>, newest 6.12.1." in words
    assert (
        "These kernels differ in configuration and may differ in compiler too, not in version alone: "
        "see What differs between the kernels." in words
    )
    assert "../kernels/2.6.39.4/config" in shown.links and "#kernels" in shown.links


def test_many_kernels_are_listed_by_value(tmp_path):
    kernels = tuple(f"6.{number}" for number in range(7))
    study = made.full(tmp_path, kernels=kernels, seeds=(1,))
    build = {"compiler": "gcc 12", "configuration": "common", "fragments": 0}
    for number, kernel in enumerate(kernels):
        study.release(kernel, f"{kernel}.0")
        study.kernel(kernel, {"build": build}, f"CONFIG_HZ={1000 if number != 5 else 250}\n")
    shown = page(study.render())
    assert shown.table("Options that matter")[1][1] == "1000: 6.0 to 6.4, 6.6250: 6.5"
    assert "not in version alone" not in shown.words()


def test_without_tables(tmp_path):
    study = made.full(tmp_path)
    with pytest.raises(UserError, match=r"runs\.parquet"):
        report.render(study.plan_path, study.tables, study.results, study.output)


def test_tables_older_than_the_plan(tmp_path):
    study = made.full(tmp_path)
    study.build()
    study.plan["runs"][0]["folder"] = "runs/moved/1"
    study.save_plan()
    report.render(study.plan_path, study.tables, study.results, study.output)
    text = (study.output / "index.html").read_text(encoding="utf-8")
    assert "the tables were made before the plan" in page(text).words()


def render_again(study):
    """The report from the tables as they are, by hand."""
    report.render(study.plan_path, study.tables, study.results, study.output)
    return page((study.output / "index.html").read_text(encoding="utf-8"))


def test_runs_that_are_gone_since_the_tables(tmp_path):
    study = made.full(tmp_path)
    study.build()
    shutil.rmtree(study.results / "runs")
    shown = render_again(study)
    assert shown.table("How the planned runs ended")[1][:2] == ["missing", "12"]
    assert shown.table("create")[1][1].startswith("missing its run.json is gone since the tables were made")


@pytest.mark.parametrize(
    ("content", "outcome"),
    [("{", "infrastructure"), ('{"records": []}', "no-result"), ('{"identity": "2"}', "missing")],
)
def test_a_run_that_is_another_since_the_tables(tmp_path, content, outcome):
    study = made.full(tmp_path, seeds=(1,))
    study.build()
    path = study.path("debian-6.1", "ext4", 1) / "run.json"
    changed = json.dumps(json.loads(path.read_text()) | json.loads(content)) if content != "{" else content
    path.write_text(changed)
    shown = render_again(study)
    assert shown.table("How the planned runs ended")[2][:2] == [outcome, "1"]
    assert shown.table("create")[2][1].startswith(outcome)
    assert "0.1270 s" not in shown.words()


def test_warnings_are_shown(tmp_path):
    study = made.full(tmp_path, seeds=(1,))
    document = json.loads((study.path("debian-6.1", "ext4", 1) / "run.json").read_text())
    study.write("debian-6.1", "ext4", 1, document | {"warnings": ["WARNING: <b>", "WARNING: two"]})
    shown = page(study.render())
    assert "create-unlink, debian-6.1, ext4: 1 run: WARNING: <b>" in shown.words()
    assert shown.table("How the planned runs ended")[1][:2] == ["ok", "4"]


def test_console_tail(tmp_path):
    path = tmp_path / "console.log"
    assert report.console_tail(path) is None
    path.write_bytes(b"")
    assert report.console_tail(path) == []
    path.write_bytes(b"one\r\ntwo\rthree\x7f\n\r\n")
    assert report.console_tail(path) == ["one", "two␍three␡"]
    path.write_bytes(b"x" * 100_000 + b"\nlast")
    assert report.console_tail(path) == ["last"]
    path.write_bytes(b"".join(b"%d\n" % number for number in range(100)))
    assert report.console_tail(path, 3) == ["97", "98", "99"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.1234567, "0.1235"),
        (9.99996, "10.00"),
        (12.34567, "12.35"),
        (12345.6, "12,346"),
        (0.000000123, "0.000000123"),
    ],
)
def test_seconds_have_four_digits(value, text):
    assert display.seconds(value) == text


def test_spread_of_seeds():
    # (12 - 9) / 10
    assert stats.summarize([9, 12, 10]) == stats.Summary(10, 9, 12, 3, 0.3)
    assert stats.summarize([7]).spread is None
    assert stats.summarize([0, 0]).spread is None
    assert stats.summarize([]) is None
    assert stats.ratio(3, 0) is None and stats.ratio(3, 2) == 1.5


def several(folder, **options):
    """Two disks and two variants: each group takes a second longer than the one before."""
    options = {"disks": ("ram", "hdd"), "variants": {"sync": {"sync": True}, "plain": {"sync": False}}} | options
    return made.full(folder, **options)


def test_a_matrix_for_each_disk_and_variant(tmp_path):
    shown = page(several(tmp_path).render())
    captions = [one for one in shown.captions() if one.startswith("create, ")]
    assert captions == [
        f"create, {group}, virtual seconds: kernels × filesystem"
        for group in ("ram, sync", "ram, plain", "hdd, sync", "hdd, plain")
    ]
    # The third group: 2 s longer than 0.245 s.
    assert shown.table("create, hdd, sync")[2][2].startswith("2.245 s")
    words = shown.words()
    assert "hdd, sync: Creating 5,000 files takes 1.02 times as long on btrfs as on ext4 with debian-5.10" in words
    assert "Variant plain: sync = False." in words
    svgs = plots(shown)
    assert len(svgs) == len(set(svgs)) == 8
    # A run is found by what it is of.
    assert ["debian-6.1", "btrfs, hdd, plain", "3"] in [
        row[:3] for row in shown.table("Creating and deleting files: every")
    ]


def test_all_disks_and_variants_in_one_table(tmp_path):
    study = several(tmp_path)
    for seed in study.seeds:
        document = study.document("debian-6.1", "ext4", seed, "unsupported", "No timer.", [], "hdd", "sync")
        study.write("debian-6.1", "ext4", seed, document, others=("hdd", "sync"))
    table = page(study.render()).table("All of create")
    assert table[0] == ["filesystem, disk, variant", "debian-5.10", "debian-6.1"]
    # 0.1 and 0.127 s are what the others are to; 2.1 and 2.245 s follow.
    assert table[1] == ["ext4, ram, sync", "0.1000 s ratio 1.00", "0.1270 s ratio 1.00"]
    assert table[5] == ["ext4, hdd, sync", "2.100 s ratio 21.0", "unsupported"]
    assert table[6] == ["btrfs, hdd, sync", "2.150 s ratio 21.5", "2.245 s ratio 17.7"]


def test_many_disks_are_folded_below_the_table_of_all(tmp_path):
    shown = page(made.full(tmp_path, disks=("ram", "a", "b", "c", "d"), seeds=(1,)).render())
    folded = [found for tag, found in shown.tags if tag == "details" and found.get("class") == "folded"]
    # The answers after the eighth of ten, and 5 disks in 2 phases; what follows them is short and stands open.
    assert len([found for found in folded if "open" not in found]) >= 11
    assert "2 more" in shown.words()
    assert len(shown.table("All of create")) == 11


def test_one_disk_that_is_no_ram_disk_is_said(tmp_path):
    study = made.full(tmp_path, disks=("ssd",))
    slow = {"name": None, "model": "hdd", "latency_us": 8000, "queue_depth": 1, "mib": None}
    fast = {"name": "near", "model": "ssd", "latency_us": 100, "queue_depth": 32, "mib": 256}
    words = {
        "hdd (8,000 µs a request, 1 at once) and near: ssd (100 µs a request, 32 at once, 256 MiB)": None,
        "bcache, writeback, of near: ssd (100 µs a request, 32 at once, 256 MiB) before hdd (8,000 µs a request, 1 at "
        "once)": "writeback",
    }
    for text, mode in words.items():
        study.plan["disks"] = {"ssd": {"bcache": mode, "devices": [slow, fast]}, "other": {}}
        study.save_plan()
        assert f"Disk ssd: {text}." in page(study.render()).words()
    shown = page(study.render())
    assert shown.table("create, ssd, virtual seconds")[1][1].startswith("0.1000 s")
    assert not [one for one in shown.captions() if one.startswith("All of")]


def test_a_phase_that_only_one_variant_has(tmp_path):
    study = several(tmp_path, seeds=(1,))
    study.plan["experiments"][study.name]["phases"].append("flush")
    study.plan["experiments"][study.name]["variants"]["sync"]["phases"].append("flush")
    study.save_plan()
    shown = page(study.render())
    assert [one for one in shown.captions() if one.startswith("flush")] == [
        "flush, ram, sync, virtual seconds: kernels × filesystem",
        "flush, hdd, sync, virtual seconds: kernels × filesystem",
    ]
    # It is not there, so that those runs have no result; the others have theirs.
    assert shown.table("flush, ram, sync")[1][1].startswith("no-result")
    assert shown.table("create, ram, plain")[1][1].startswith("1.099 s")


def test_published_figures_of_a_disk_a_variant_a_kernel(tmp_path):
    figures = [
        {"phase": "create", "filesystem": "btrfs", "disk": "hdd", "variant": "sync", "elapsed_s": 8.0},
        {"phase": "create", "filesystem": "ext4", "disk": "hdd", "variant": "sync", "elapsed_s": 4.0},
        {"phase": "create", "filesystem": "ext4", "kernel": "debian-5.10", "variant": "plain", "elapsed_s": 3.0},
        {"phase": "create", "filesystem": "ext4", "disk": "hdd", "ratio": 7, "ratio_to": {"disk": "ram"}},
        {
            "phase": "create",
            "filesystem": "btrfs",
            "disk": "ram",
            "variant": "sync",
            "ratio": 0.5,
            "ratio_to": {"phase": "delete", "kernel": "debian-5.10"},
        },
        {"phase": "create", "filesystem": "xfs", "disk": "ram", "variant": "sync", "elapsed_s": 1.0},
        {"phase": "create", "filesystem": "ext4", "disk": "ram", "variant": "sync", "used_bytes": 2 << 20},
    ]
    published = made.PUBLISHED | {"figures": figures, "scale": {}}
    shown = page(several(tmp_path, published=(published,)).render())
    assert shown.table("Published s")[1:] == [
        ["create", "btrfs, hdd, sync", "8.000 s", "2.150 s", "2.245 s"],
        ["create", "ext4, hdd, sync", "4.000 s", "2.100 s", "2.127 s"],
        ["create", "ext4, ram, plain (published with debian-5.10)", "3.000 s", "1.100 s", "1.127 s"],
        ["create", "ext4, hdd, plain (published with debian-5.10)", "3.000 s", "3.100 s", "3.127 s"],
        ["create", "xfs, ram, sync", "1.000 s", "not planned", "not planned"],
        # 2.15 / 2.1 and 2.245 / 2.127
        ["create", "btrfs / ext4, hdd, sync, ratio", "2.00", "1.02", "1.06"],
        # 356 blocks of 4096 B
        ["create", "ext4, ram, sync", "2.00 MiB", "1.39 MiB", "1.39 MiB"],
        # 2.1 / 0.1, 2.127 / 0.127; 3.1 / 1.1, 3.127 / 1.127
        ["create", "ext4, hdd, sync / ram, ratio", "7.00", "21.0", "16.7"],
        ["create", "ext4, hdd, plain / ram, ratio", "7.00", "2.82", "2.77"],
        # 0.15 / 0.3, 0.245 / 0.3
        ["create", "btrfs, ram, sync / delete, debian-5.10, ratio", "0.500", "0.500", "0.817"],
    ]


def kinds(metadata_bytes):
    """What the core says of btrfs's space with DUP metadata."""
    data = {"kind": "data", "profile": "single", "total_bytes": 8 << 20, "used_bytes": 256 << 10}
    metadata = {"kind": "metadata", "profile": "DUP", "total_bytes": 1 << 30, "used_bytes": metadata_bytes}
    return {"btrfs": [data, metadata]}


def test_space_of_btrfs_by_kind(tmp_path):
    figure = {"phase": "create", "filesystem": "btrfs", "used_bytes": 684405555, "kind": "metadata"}
    published = made.PUBLISHED | {"figures": [figure, figure | {"kind": "all", "raw": True}]}
    study = made.full(tmp_path, seeds=(1,), published=(published,))
    records = [made.space("", 1), made.space("create", 1) | kinds(3 << 20)]
    records += [made.timed("create", 10**8), made.timed("delete", 10**8)]
    study.write("debian-6.1", "btrfs", 1, study.document("debian-6.1", "btrfs", 1, "ok", None, made.whole(records)))
    shown = page(study.render())
    assert shown.table("Of btrfs by kind")[1:] == [
        ["debian-6.1", "btrfs", "data", "not measured", "0.25 MiBwith copies 0.25 MiBsingle", "not measured"],
        ["debian-6.1", "btrfs", "metadata", "not measured", "3.00 MiBwith copies 6.00 MiBDUP", "not measured"],
        ["debian-6.1", "btrfs", "all", "not measured", "3.25 MiBwith copies 6.25 MiBsingle, DUP", "not measured"],
    ]
    # 652.70 MiB, as the seed thread's table has it.
    assert shown.table("Published s")[1] == ["create", "btrfs, metadata", "652.70 MiB", "not measured", "3.00 MiB"]
    assert shown.table("Published s")[2][1:] == ["btrfs, all with copies", "652.70 MiB", "not measured", "6.25 MiB"]


def test_requests_and_latencies(tmp_path):
    study = made.Results(tmp_path, kernels=("k",), filesystems=("f",), disks=("hdd",), phases=("create",))
    for seed in study.seeds:
        phase = made.timed("create", 10**9) | {
            "disks": {"sda": [seed, 16, 100 * seed, 2048, -1]},
            "stat": {"user": 0, "nice": 0, "system": 25, "idle": 0, "iowait": 74, "irq": 0, "softirq": 1},
        }
        times = {"p50_ns": 1000 * seed, "p90_ns": 2000, "p99_ns": 3000, "max_ns": 10**7, "total_ns": 5 * 10**8}
        latency = {
            "type": "operations",
            "phase": "create",
            "operation": "fsync",
            "count": 5000,
            "bytes": 0,
            "errors": 0,
        }
        records = made.whole([phase, latency | times])
        study.write("k", "f", seed, study.document("k", "f", seed, "ok", None, records, "hdd", ""), others=("hdd", ""))
    shown = page(study.render())
    # 16 sectors of 512 B are 8 KiB, 2048 are 1 MiB; the middle seed is 2.
    assert shown.table("What the disk served")[1] == [
        *("k", "f, hdd", "create", "2", "0.01 MiB", "200", "1.00 MiB", "not counted"),
        *("0.00 s", "0.26 s", "0.74 s", "0.00 s"),
    ]
    assert shown.table("Latencies of create")[1] == ["k", "f, hdd", "fsync", "5,000", "2.00", "2.00", "3.00", "10,000"]


def test_what_an_older_core_did_not_send_is_not_shown(tmp_path):
    captions = page(made.full(tmp_path).render()).captions()
    assert not [one for one in captions if one.startswith(("What the disk served", "Latencies", "Of btrfs"))]


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["ok", "panic"])
def test_ten_thousand_runs(tmp_path, outcome):
    kernels = tuple(f"kernel-{number}" for number in range(100))
    filesystems = tuple(f"fs-{number}" for number in range(10))
    seeds = tuple(range(10))
    if outcome == "ok":
        study = made.full(tmp_path, kernels=kernels, filesystems=filesystems, seeds=seeds)
    else:
        study = made.Results(tmp_path, kernels=kernels, filesystems=filesystems, seeds=seeds)
        planned = {(*one["levels"].values(), one["seed"]) for one in study.plan["runs"]}
        for kernel, filesystem, seed in planned:
            study.failed(kernel, filesystem, seed, outcome, "It failed.")
    study.build()
    start = time.process_time()
    report.render(study.plan_path, study.tables, study.results, study.output)
    assert time.process_time() - start < 15
    words = page((study.output / "index.html").read_text(encoding="utf-8")).words()
    assert f"10,000 runs planned: 10,000 {outcome}." in words


def test_disks_nominal_and_measured(tmp_path):
    study = made.full(tmp_path, disks=("hdd", "pair"), seeds=(1,))
    device = {"name": "", "model": "hdd", "latency_us": 8000, "queue_depth": 1, "mib": None}
    study.plan["disks"] = {
        "hdd": {"bcache": None, "devices": [device]},
        "pair": {"bcache": None, "devices": [device, device]},
    }
    study.save_plan()
    old, new = study.kernels
    figure = calibration.Figure(new, "hdd", 1, "hdd", "nullb0", "random read, 4 KiB", 8000, 8022.25, "us")
    slow = replace(figure, disk="pair", kernel=old, number=2, nominal=20000, measured=20010)
    found = {
        (new, "hdd"): [figure, replace(figure, what="flush after a write", nominal=None, measured=1.5)],
        # Of another kind of device, and of the one that `hdd` is.
        (old, "pair"): [
            slow,
            replace(slow, what="flush after a write", nominal=None, measured=1.25),
            replace(figure, disk="pair", kernel=old, device="sda", measured=9000),
            replace(figure, disk="pair", kernel=old, what="flush after a write", nominal=None, measured=2),
        ],
        (new, "pair"): [calibration.Unmeasured(new, "pair", "unsupported", "it has no <driver>")],
    }
    for (kernel, disk), figures in found.items():
        calibration.write(figures, study.results / calibration.place(kernel, disk))
    shown = page(study.render())
    assert shown.table("Nominal and measured figures of the disks") == [
        ["device", "figure", "nominal", old, new],
        ["hdd, 8,000 us", "random read, 4 KiB, us", "8,000", "9,000, more than 10 % off", "8,022"],
        ["hdd, 8,000 us", "flush after a write, us", "none", "2.00", "1.50"],
        ["hdd, 20,000 us", "random read, 4 KiB, us", "20,000", "20,010", "not measured"],
        ["hdd, 20,000 us", "flush after a write, us", "none", "1.25", "not measured"],
    ]
    assert f"pair on {new}: unsupported, it has no <driver>" in shown.words()
    assert "#disks" in shown.links
    # Without such files nothing is told of disks but what they are.
    shutil.rmtree(study.results / "calibration")
    assert "No disk was measured" in page(study.render()).words()
