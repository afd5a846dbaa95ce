"""The command that finds a circuit: what it writes is a finding, and what it refuses."""

from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.analysis.circuits.finding import Finding, finding_from
from explorer.catalog.shipped import SHIPPED

INDUCTION = ["circuit", "--model", str(SHIPPED / "induction")]
TEXTS = ["--clean", "abcdeabcdeab", "--corrupted", "adcbeadcbeab"]


def found(out: Path, *arguments: str) -> Finding:
    assert main([*INDUCTION, *arguments, "--out", str(out)]) == 0
    return finding_from(out.read_bytes())


def test_two_texts_make_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "finding.json"
    finding = found(out, *TEXTS, "--answer", "c", "--against", "e", "--exact", "3")
    assert (finding.metric, finding.method, finding.steps) == ("Logit difference", "EAP-IG", 5)
    assert [(each.answer, each.against) for each in finding.pairs] == [("c", "e")]
    assert sum(edge.exact is not None for edge in finding.edges) == 3
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("Logit difference: ")
    assert lines[1].startswith("Strongest heads by EAP-IG: 0.")
    assert lines[-1] == str(out)
    assert "exact, parts: 100%" in said.err
    first = out.read_text()
    found(out, *TEXTS, "--answer", "c", "--against", "e", "--exact", "3")
    assert out.read_text() == first, "the same question makes the same file"


def test_templates_tables_metrics_and_methods(tmp_path: Path) -> None:
    out, table = tmp_path / "finding.json", tmp_path / "pairs.csv"
    finding = found(out, "--template", "induction", "--count", "3", "--seed", "2", "--exact", "0")
    assert len(finding.pairs) == 3
    assert all(edge.exact is None for edge in finding.edges)
    table.write_text("clean,corrupted\nabcabca,acbacba\nxyxyx,xyxyy\n")
    finding = found(out, "--pairs", str(table), "--metric", "kl", "--method", "EAP-IG")
    assert (finding.metric, len(finding.pairs)) == ("KL divergence", 2)
    assert found(out, *TEXTS, "--metric", "logit-difference", "--method", "EAP").steps == 1


ONE_OF = "two texts (--clean and --corrupted), a table (--pairs) or a template (--template)."
REFUSED = [
    ("", f"Give one of these: {ONE_OF}"),
    ("--clean abc --template induction", f"Give one of these: {ONE_OF}"),
    ("--clean abc", "There is no corrupted text yet"),
    ("--clean abc --corrupted abd --answer xy", "“xy” is 2 tokens, “x”, “y”: give one token."),
    ("--pairs /absent", "/absent cannot be read: No such file or directory."),
    ("--pairs /dev/zero", "/dev/zero has more than 1,000,000 bytes, the most that is read."),
    ("--template gender", "choose another template."),
    ("--template nothing", "There is no template called 'nothing' here: it is one of indirect"),
    ("--template induction --count 0", "--count must be from 1 to 200."),
    ("--clean abc --corrupted abd --metric joy", "There is no metric called 'joy' here"),
    ("--clean abc --corrupted abd --metric class-score", "There is no metric called"),
    ("--clean aba --corrupted abb --exact -1", "--exact must be a whole number from 0 on."),
    ("--clean aba --corrupted abb --metric kl --method EAP", "choose EAP-IG."),
    ("--clean aba --corrupted abb --out /absent/it", "/absent/it cannot be written: No such file"),
    ("--clean aba --corrupted abb --model absent", "There is no checkpoint folder absent."),
    (f"--clean ab --corrupted ba --model {SHIPPED / 'reverse'}", "a model with one stack"),
]


def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for line, sentence in REFUSED:
        with subtests.test(line=line):
            out = tmp_path / "finding.json"
            assert main([*INDUCTION, "--out", str(out), *line.split()]) == 2
            assert sentence in capsys.readouterr().err.splitlines()[-1]
            assert not out.exists()
