"""How each table of the report is counted again: by a query over the store's files, or by name why not.

A recount returns the rows that the table must have, with `APART` in columns that are named with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from mixtures.plan import Plan
from tests.viewers.books import Books, decimal, share
from viewers.numbers import grouped

Row = list[Any]
Rows = list[Row]
Told = Mapping[str, Any]
"""A table of `report.json`."""

APART: Final = "counted elsewhere"
NOBODY: Final = {"source": "by the source’s own metadata", "user": "asserted by the user of the recipe"}
BASES: Final = {**NOBODY, "page": "declared in the page", "unknown": "nobody says"}
MASKS: Final = {"e-mail": "<email>", "phone number": "<phone>", "ip address": "<ip>", "iban": "<iban>"}

STEPS: Final = """
    WITH out AS (SELECT stage, count(*) AS n, sum(characters) AS c FROM docs WHERE source = $1 GROUP BY stage),
    went AS (
        SELECT l.stage, s.place, sum(l.kind = 'dropped')::INT AS n,
               sum(CASE WHEN l.kind = 'dropped' THEN characters ELSE 0 END)::INT AS c,
               sum(CASE WHEN l.kind = 'edit' THEN cut ELSE 0 END)::INT AS cut,
               sum(CASE WHEN l.kind = 'edit' THEN inserted ELSE 0 END)::INT AS inserted
        FROM ledger l JOIN steps s ON s.stage = l.stage AND s.step = l.transform WHERE l.source = $1 GROUP BY ALL),
    flow AS (
        SELECT s.stage, g.name, g.place AS stage_place, s.place, s.step, coalesce(w.n, 0) AS n, coalesce(w.c, 0) AS c,
               coalesce(w.cut, 0) AS cut, coalesce(w.inserted, 0) AS inserted,
               coalesce(o.n, 0) AS last_n, coalesce(o.c, 0) AS last_c
        FROM steps s JOIN stages g USING (stage) LEFT JOIN went w ON w.stage = s.stage AND w.place = s.place
        LEFT JOIN out o ON o.stage = s.stage
        WHERE o.n > 0 OR EXISTS (SELECT 1 FROM ledger x WHERE x.stage = s.stage AND x.source = $1
                                 AND x.transform NOT LIKE 'read_%')),
    after AS (
        SELECT *, (last_n + coalesce(sum(n) OVER later, 0))::INT AS n_out,
               (last_c + coalesce(sum(c + cut - inserted) OVER later, 0))::INT AS c_out FROM flow
        WINDOW later AS (PARTITION BY stage ORDER BY place ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
    SELECT stage, step, (n_out + n)::INT AS n_in, n::INT, n_out, (c_out + c + cut - inserted)::INT AS c_in,
           inserted::INT, c::INT, cut::INT, c_out
    FROM after ORDER BY stage_place, place
"""
"""Stage, step, documents in, dropped, out, characters in, inserted, dropped, cut, out of one source."""


@dataclass(frozen=True, slots=True)
class Recount:
    """A table by its caption: how it is counted again, and the columns that are not, each with the reason."""

    caption: str
    count: Callable[[Books, Told, str], Rows]
    apart: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotRecounted:
    """A table by its caption that no query over the files can count, and why."""

    caption: str
    why: str


def came_out(books: Books, told: Told, _: str) -> Rows:
    rows = []
    for name, stage in books.outputs.items():
        query = "SELECT count(*), sum(characters)::INT, count(DISTINCT source) FROM docs WHERE stage = ?"
        counted = list(books.rows(query, stage)[0])
        shards = books.one("SELECT shards FROM stages WHERE stage = ?", stage)
        hosts = books.one("SELECT count(DISTINCT host) FROM docs WHERE stage = ?", stage)
        rows.append([name, *counted, shards, hosts or "–"])
    return rows


def licences(books: Books, told: Told, output: str) -> Rows:
    query = """SELECT source, licence, licence_basis, count(*) AS many, sum(many) OVER (), sum(characters)::INT
               FROM docs WHERE stage = ? GROUP BY ALL"""
    found = books.rows(query, books.outputs[output])
    cells = books.cells()
    return [
        [
            s,
            licence,
            BASES[basis],
            n,
            share(n, int(of)),
            c,
            *([_tokens(books, s, n, c, [row[0] for row in found].count(s))] if cells else []),
        ]
        for s, licence, basis, n, of, c in found
    ]


def _tokens(books: Books, source: str, documents: int, characters: int, kinds: int) -> str:
    """Return the tokens of the caches of a source, where these hold the same; else what they would be by their rate."""
    made = books.cells()
    mine = {key: cell for key, cell in made.items() if key[1] == source} or made
    sums = [cell_query(books, cell, about["dataset"]) for (_, cell), about in mine.items()]
    tokens, letters = sum(cell["tokens"] for cell in mine.values()), sum(row[1] for row in sums)
    if (sum(row[0] for row in sums), letters, kinds) == (documents, characters, 1) and len(mine) < len(made):
        return str(tokens)
    return f"≈ {characters * tokens // letters}"


def licences_read(books: Books, told: Told, _: str) -> Rows:
    """Sum what is drawn, one by one, of each cache, by the licence of its documents."""
    phases = drawn(books) if books.plan_path.exists() else []
    sums: dict[tuple[str, str, str], list[int]] = {}
    for (output, cell), made in books.cells().items():
        if output == "training":
            query = "SELECT DISTINCT source, licence, licence_basis FROM docs WHERE stage = $1 AND source IN ($2, $3)"
            ((source, licence, basis),) = books.rows(query, made["dataset"], cell, "web" if "topic=" in cell else cell)
            taken = sum(counts[cell][1] for _, counts in phases) if phases else made["tokens"]
            found = sums.setdefault((source, licence, BASES[basis]), [0, 0])
            found[0], found[1] = found[0] + made["tokens"], found[1] + taken
    whole = sum(read for _, read in sums.values())
    return [[*named, held, read, share(read, whole)] for named, (held, read) in sums.items()]


def optouts(books: Books, told: Told, output: str) -> Rows:
    rows: dict[str, list[str]] = {}
    for place, signal in enumerate(("robots_txt", "robots_meta", "tdm"), 1):
        query = f"SELECT source, optout.{signal} AS a, count(*) FROM docs WHERE stage = ? GROUP BY ALL ORDER BY a"
        for source, answer, n in books.rows(query, books.outputs[output]):
            row = rows.setdefault(source, [source, "", "", ""])
            row[place] += f"{', ' if row[place] else ''}{answer} {n}"
    return list(rows.values())


def read_and_refused(books: Books, source: str) -> tuple[int, int]:
    """Return how many records of a source were read, and how many were refused."""
    (kept,) = books.rows("SELECT count(*) FROM docs JOIN stages USING (stage) WHERE reads AND source = ?", source)[0]
    query = """SELECT count(*) FROM ledger JOIN stages USING (stage)
               WHERE reads AND source = ? AND kind = 'dropped' AND (transform LIKE 'read_%') = ?"""
    return kept + books.one(query, source, False), books.one(query, source, True)


def all_sources(books: Books, told: Told, _: str) -> Rows:
    rows = []
    for source in sources(books):
        read, refused = read_and_refused(books, source)
        for output, stage in books.outputs.items():
            query = "SELECT count(*), coalesce(sum(characters), 0)::INT FROM docs WHERE stage = ? AND source = ?"
            n, characters = books.rows(query, stage, source)[0]
            rows.append([source, output, read, refused, n, share(n, read), characters])
    return rows


def sources(books: Books) -> list[str]:
    """Return all sources."""
    return [s for (s,) in books.rows("SELECT DISTINCT source FROM docs UNION SELECT DISTINCT source FROM ledger")]


def what_files_hold(books: Books, told: Told, source: str) -> Rows:
    """Count records and refusals by their origins, blank lines in the files themselves, and bytes on disk."""
    folder = str(books.inputs / {"crawl": "crawl", "shelf": "shelf", "web": "web"}.get(source.split('"')[0], source))
    folder = folder if (books.inputs / folder).exists() else str(books.inputs / "in")
    size = int(books.one("SELECT sum(size) FROM read_blob(?)", f"{folder}/*"))
    records = """SELECT count(*), sum(origin.length)::INT FROM (
        SELECT origin FROM docs JOIN stages USING (stage) WHERE reads AND source = $1 UNION ALL
        SELECT origin FROM ledger JOIN stages USING (stage)
        WHERE reads AND source = $1 AND kind = 'dropped' AND transform NOT LIKE 'read_%')"""
    refused = """SELECT reason, count(*), sum(origin.length)::INT FROM ledger
        WHERE source = ? AND transform LIKE 'read_%' AND kind = 'dropped' GROUP BY reason"""
    blank = """SELECT count(*) FROM (SELECT unnest(string_split(rtrim(content, chr(10)), chr(10))) AS line
        FROM read_text(?)) WHERE trim(line) = ''"""
    groups: Rows = [["Records read", "read", *books.rows(records, source)[0]]]
    if lines := books.one(blank, f"{folder}/*"):
        groups.append(["Records that are no documents", "blank line", lines, lines])
    groups += [["Records refused", *row] for row in books.rows(refused, source)]
    assert sum(row[3] for row in groups) == size
    return [[*row, share(row[3], size)] for row in groups]


def through_steps(books: Books, told: Told, source: str) -> Rows:
    return [[f"Stage {books.title(stage)}", *row] for stage, *row in books.rows(STEPS, source)]


def why_documents_go(books: Books, told: Told, source: str) -> Rows:
    came = {(stage, step): n for stage, step, n, *_ in books.rows(STEPS, source)}
    query = """SELECT stage, transform, reason, count(*), sum(characters)::INT FROM ledger
               WHERE kind = 'dropped' AND source = ? AND transform NOT LIKE 'read_%' GROUP BY ALL"""
    found = books.rows(query, source)
    return [[why, step, n, share(n, came[stage, step]), c] for stage, step, why, n, c in found]


def filters(books: Books, told: Told, _: str) -> Rows:
    """Count what each transform dropped, held-out texts apart: all its reasons, where there are some, and each."""
    held = [stage for stage, made in books.stages.items() if made["operation"].get("operation") == "hold out"]
    query = f"""SELECT transform, coalesce(reason, 'all its reasons'), count(*), sum(characters)::INT,
                    count(DISTINCT reason) FROM ledger
                WHERE kind = 'dropped' AND transform NOT LIKE 'read_%' AND stage NOT IN ({_marks(held)})
                GROUP BY GROUPING SETS ((transform, reason), (transform))"""
    found = [row for row in books.rows(query, *held) if row[1] != "all its reasons" or row[4] > 1]
    whole = books.one(
        f"""SELECT coalesce(sum(characters), 0)::INT FROM ledger WHERE kind = 'dropped'
            AND transform NOT LIKE 'read_%' AND stage NOT IN ({_marks(held)})""",
        *held,
    )
    return [[*row[:4], share(row[3], whole), APART] for row in found]


def cuts(books: Books, told: Told, _: str) -> Rows:
    held = [stage for stage, made in books.stages.items() if made["operation"].get("operation") == "hold out"]
    query = f"""SELECT reason, transform, count(DISTINCT id), sum(cut)::INT AS gone FROM ledger
                WHERE kind = 'edit' AND stage NOT IN ({_marks(held)}) GROUP BY ALL HAVING gone > 0"""
    return [[*row, APART] for row in books.rows(query, *held)]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values)) or "''"


def what_is_changed(books: Books, told: Told, source: str) -> Rows:
    came = {(stage, step): n for stage, step, n, *_ in books.rows(STEPS, source)}
    query = """SELECT stage, transform, reason, count(DISTINCT id), sum(cut)::INT, sum(inserted)::INT FROM ledger
               WHERE kind = 'edit' AND source = ? GROUP BY ALL"""
    found = books.rows(query, source)
    return [[why, step, n, share(n, came[stage, step]), cut, new] for stage, step, why, n, cut, new in found]


def near_misses(books: Books, told: Told, _: str) -> Rows:
    """Count them in the samples, which hold all while there are no more than 8."""
    query = """SELECT s.reason, s.transform, g.name, count(*), (
                   SELECT count(*) FROM ledger l WHERE l.stage = s.stage AND l.transform = s.transform
                   AND l.reason = s.reason AND l.kind = 'dropped')
               FROM samples s JOIN stages g USING (stage) WHERE s.kind = 'near miss' GROUP BY ALL"""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for reason, transform, stage, near, dropped in (r for r in _by_stage(books, query)):
        assert near < 8
        sums[reason, transform, stage] = [near, dropped]
    return [[*key, *counts] for key, counts in sums.items()]


def _by_stage(books: Books, query: str) -> Sequence[tuple[Any, ...]]:
    return books.rows(query.replace("GROUP BY ALL", "GROUP BY s.stage, s.reason, s.transform, g.name"))


def leaks(books: Books, told: Told, stage: str) -> Rows:
    query = """SELECT source, split_part(reason, ': ', 2), sum(kind = 'dropped')::INT,
                   sum(CASE WHEN kind = 'dropped' THEN characters ELSE 0 END)::INT, sum(kind = 'edit')::INT
               FROM ledger WHERE stage = ? GROUP BY ALL"""
    return [[*row, APART] for row in books.rows(query, books.stage(stage))]


def benchmarks(books: Books, told: Told, _: str) -> Rows:
    (step,) = [
        (key, step["transform"]["fields"])
        for key, made in books.stages.items()
        for step in made["operation"].get("steps", [])
        if step["name"] == "Decontaminate"
    ]
    query = "SELECT count(DISTINCT id) FROM ledger WHERE stage = ?"
    items = books.one(
        "SELECT count(*) FROM read_json(?, format = 'newline_delimited')", str(books.inputs / "bench.jsonl")
    )
    (benchmark,) = step[1]["benchmarks"]
    return [[benchmark["fields"]["name"], str(items), APART, books.one(query, step[0]), APART, APART]]


def by_length(books: Books, told: Told, title: str) -> Rows:
    """Count the documents that came in by length, where the chain has one step."""
    filter_, _, stage = title.partition(" in ")
    key = books.stage(stage or filter_)
    assert len(books.rows("SELECT 1 FROM steps WHERE stage = ?", key)) == 1
    query = """WITH came AS (
            SELECT id, characters, false AS lost FROM docs WHERE stage = $1 UNION ALL
            SELECT id, characters, true FROM ledger WHERE stage = $1 AND kind = 'dropped'),
        binned AS (SELECT greatest(16, 2 ** (floor(log2(greatest(characters, 1))) + 1))::INT AS bin, lost FROM came)
        SELECT bin, count(*), sum(lost)::INT FROM binned GROUP BY bin"""
    bins = books.rows(query, key)
    came, lost = (sum(row[place] for row in bins) for place in (1, 2))
    large = [row for row in bins if row[1] >= 50]
    small = [row for row in bins if row[1] < 50]
    rows = [
        [f"{grouped(0 if top == 16 else top // 2)} to {grouped(top - 1)} characters", n, gone] for top, n, gone in large
    ]
    if small:
        rows.append([f"{len(small)} others by length", *(sum(row[place] for row in small) for place in (1, 2))])
    return [
        ["length", name, n, gone, share(gone, n), decimal(Fraction(gone * came, n * lost), 2), APART]
        for name, n, gone in rows
    ]


def source_loses(books: Books, told: Told, _: str) -> Rows:
    (key,) = [key for key, made in books.stages.items() if made["operation"]["operation"] == "deduplicate"]
    bounds = dict(books.stages[key]["operation"]["fields"]["max_removed"])
    rows = []
    query = "SELECT count(*) FROM ledger WHERE stage = ? AND source = ? AND reason = ? AND kind = 'dropped'"
    for source in sources(books):
        went = [books.one(query, key, source, why) for why in ("empty text", "equal text", "near duplicate")]
        stay = books.one("SELECT count(*) FROM docs WHERE stage = ? AND source = ?", key, source)
        bound = bounds.get(source)
        bound = "–" if bound is None else str(next(iter(bound.values())) if isinstance(bound, dict) else bound)
        rows.append([source, stay + sum(went), *went, stay, share(sum(went), stay + sum(went)), bound])
    return rows


def hosts(books: Books, stage: str) -> list[tuple[Any, ...]]:
    """Return name, documents, characters and sums of scores of each host."""
    query = """SELECT host, count(*), sum(characters)::INT, count(quality_score), sum(quality_score)::INT,
                   sum(quality_score * quality_score)::INT
               FROM docs WHERE stage = ? AND host IS NOT NULL GROUP BY host"""
    return books.rows(query, books.stage(stage))


def gini(amounts: Sequence[int]) -> str:
    """Return the mean absolute difference of all pairs over twice the mean: another form than the page's."""
    total = sum(abs(one - other) for one in amounts for other in amounts)
    return _floored(Fraction(total, 2 * len(amounts) * sum(amounts)))


def _floored(value: Fraction) -> str:
    return decimal(Fraction(value * 1_000_000 // 1, 1_000_000), 3)


def explained(found: Sequence[tuple[Any, ...]]) -> str:
    """Return 1 - (within / (N - H)) / (all / (N - 1)) as fractions."""
    scored = [(n, total, squares) for *_, n, total, squares in found if n]
    if not scored:
        return "no scores"
    count, total, squares = (sum(row[place] for row in scored) for place in range(3))
    every = squares - Fraction(total * total, count)
    within = squares - sum(Fraction(row[1] * row[1], row[0]) for row in scored)
    value = 1 - within * (count - 1) / (every * (count - len(scored)))
    return f"quality_score {_floored(value)}"


def unequal_hosts(books: Books, told: Told, _: str) -> Rows:
    rows = []
    for name, *_rest in told["rows"]:
        found = hosts(books, name)
        ginis = [gini([row[place] for row in found]) for place in (1, 2)]
        rows.append([name, len(found), *ginis, explained(found)])
    return rows


def largest_hosts(books: Books, told: Told, stage: str) -> Rows:
    found = hosts(books, stage)
    return [[host, n, share(n, sum(row[1] for row in found))] for host, n, *_ in found]


def masked(books: Books, told: Told, stage: str) -> Rows:
    query = """SELECT source, reason, count(DISTINCT id), sum(inserted)::INT, sum(cut)::INT FROM ledger
               WHERE stage = ? AND transform = 'MaskPII' AND kind = 'edit' GROUP BY ALL"""
    found = books.rows(query, books.stage(stage))
    return [[source, why, n, inserted // len(MASKS[why]), cut] for source, why, n, inserted, cut in found]


def stages(books: Books, told: Told, _: str) -> Rows:
    query = "SELECT name, stage, (SELECT count(*) FROM docs d WHERE d.stage = s.stage), shards FROM stages s"
    return [[name, key[:16], APART, n, shards, APART] for name, key, n, shards in books.rows(query)]


def held_out(books: Books, told: Told, stage: str) -> Rows:
    key = books.stage(stage)
    query = """WITH went AS (SELECT source, reason, characters FROM ledger WHERE stage = $1 AND kind = 'dropped'),
        kept AS (SELECT source, characters FROM docs WHERE stage = $1),
        both_ AS (SELECT source, '' AS reason, characters FROM kept UNION ALL SELECT * FROM went)
        SELECT coalesce(source, 'all sources'), count(*), sum(reason = 'held out')::INT,
            sum(reason LIKE 'equal%')::INT, sum(reason LIKE 'near%')::INT, sum(reason = '')::INT,
            sum(CASE WHEN reason = 'held out' THEN characters ELSE 0 END)::INT, sum(characters)::INT
        FROM both_ GROUP BY GROUPING SETS ((source), ())"""
    return [[*row[:-1], share(row[-2], row[-1])] for row in books.rows(query, key)]


def cell_query(books: Books, cell: str, dataset: str) -> tuple[int, int, int]:
    """Return documents, characters and bytes of the texts of a cell."""
    where, values = "source = ?", [cell]
    if cell.startswith("topic="):
        topic, _, level = cell.removeprefix("topic=").rpartition("/quality_level=")
        where, values = "topic = ? AND quality_level IS NOT DISTINCT FROM TRY_CAST(? AS BIGINT)", [topic, level]
    query = f"SELECT count(*), sum(characters)::INT, sum(strlen(text))::INT FROM docs WHERE stage = ? AND {where}"
    found = books.rows(query, dataset, *values)[0]
    return int(found[0]), int(found[1]), int(found[2])


def caches(books: Books, told: Told, _: str) -> Rows:
    rows: Rows = []
    sums: dict[str, list[int]] = {}
    for (output, cell), made in books.cells().items():
        n, characters, size = cell_query(books, cell, made["dataset"])
        assert n == made["documents"]
        numbers = [n, characters, made["tokens"], size]
        rows.append([output, cell, *_ratios(*numbers)])
        sums[output] = [a + b for a, b in zip(sums.get(output, [0] * 4), numbers, strict=True)]
    return rows + [[output, "all cells", *_ratios(*numbers)] for output, numbers in sums.items()]


def _ratios(n: int, characters: int, tokens: int, size: int) -> Row:
    return [n, characters, tokens, decimal(Fraction(tokens, n), 1), decimal(Fraction(size, tokens), 3), APART]


def by_tokens(books: Books, told: Told, output: str) -> Rows:
    lengths = [n for (of, _), made in books.cells().items() if of == output for n in made["lengths"]]
    tops = [max(16, 1 << n.bit_length()) for n in lengths]
    return [
        [f"{0 if top == 16 else grouped(top // 2)} to {grouped(top - 1)} tokens", n, share(n, len(tops))]
        for top in (2**power for power in range(4, 25))
        if min(tops) <= top <= max(tops)
        for n in [tops.count(top)]
    ]


def special(books: Books, told: Told, _: str) -> Rows:
    rows = []
    for (output, cell), made in books.cells().items():
        query = """SELECT count(*), sum((length(text) - length(replace(text, $1, ''))) / length($1))::INT FROM docs
                   WHERE stage = $2 AND source = $3 AND contains(text, $1)"""
        n, hits = books.rows(query, "<|endoftext|>", made["dataset"], cell)[0]
        if n:
            rows.append(["<|endoftext|>", f"{output}, {cell}", n, hits])
    return rows


def losses(books: Books, told: Told, run: str) -> Rows:
    log = str(books.logs / run / "log.jsonl")
    query = """SELECT CASE kind WHEN 'train' THEN 'training batches' ELSE source END, count(*), arg_min(loss, step),
            min(step), min(loss), arg_min(step, (loss, step)), arg_max(loss, step), max(step)
        FROM read_json(?, format = 'newline_delimited', ignore_errors = true, union_by_name = true,
            columns = {kind: 'VARCHAR', step: 'BIGINT', loss: 'DOUBLE', source: 'VARCHAR'})
        WHERE kind IN ('train', 'validation') AND loss IS NOT NULL GROUP BY ALL"""
    return [[c if type(c) in (str, int) else f"{c:.4f}" for c in row] for row in books.rows(query, log)]


def drawn(books: Books) -> list[tuple[str, dict[str, list[int]]]]:
    """Return phase → component → [sequences, tokens], drawn one by one."""
    plan = Plan.load(books.plan_path)
    length, found = plan.sequences.length, []
    for segment, (start, stop) in zip(plan.segments, pairwise(plan.starts), strict=True):
        counts = {component.name: [0, 0] for component in plan.components}
        draws = plan.draw(range(start * plan.batch, stop * plan.batch))
        for place, chunk in zip(draws.components.tolist(), draws.chunks.tolist(), strict=True):
            component = plan.components[place]
            counts[component.name][0] += 1
            counts[component.name][1] += min(length, component.tokens - chunk * length)
        found.append((segment.phase, counts))
    return found


def components(books: Books, told: Told, _: str) -> Rows:
    plan = Plan.load(books.plan_path)
    tokens = {cell: made["tokens"] for (output, cell), made in books.cells().items() if output == "training"}
    phases, rows = drawn(books), []
    for number, (phase, counts) in enumerate(phases):
        weights = plan.segments[number].weights
        total = sum(n for n, _ in counts.values())
        out = sum(not n and not weights.get(name) for name, (n, _) in counts.items())
        plural = "component" if out == 1 else "components"
        told_out = f"; {out} {plural} neither asked for nor drawn" if out else ""
        for name, (n, read) in counts.items():
            if not n and not weights.get(name):
                continue
            asked = share(weights.get(name, 0), sum(weights.values()))
            rows.append(
                [f"{phase}: {total // plan.batch} steps{told_out}", name, asked, *_draws(n, total, read, tokens[name])]
            )
    if len(phases) > 1:
        for name in tokens:
            n, read = (sum(counts[name][place] for _, counts in phases) for place in (0, 1))
            total = sum(n for _, counts in phases for n, _ in counts.values())
            rows.append(["all phases", name, "–", *_draws(n, total, read, tokens[name])])
    return rows


LANGUAGES: Final = {"de": "German (de)", "tr": "Turkish (tr)"}


def read_values(books: Books, told: Told, column: str) -> Rows:
    """Count the tokens of each document by its value, and share what is drawn of each cache by them."""
    plan, phases = Plan.load(books.plan_path), drawn(books)
    sums: dict[str, list[Any]] = {}
    for (output, cell), made in books.cells().items():
        if output != "training":
            continue
        query = f"SELECT id, {column}::VARCHAR FROM docs WHERE stage = ?"
        named = {bytes(identity): value for identity, value in books.rows(query, made["dataset"])}
        held: dict[str, list[int]] = {}
        for identity, length in zip(made["ids"], made["lengths"], strict=True):
            value = named[identity]
            value = f"no {column}" if value is None else LANGUAGES.get(value, value)
            mine = held.setdefault(value, [0, 0])
            mine[0], mine[1] = mine[0] + 1, mine[1] + length
        component, before = next(c for c in plan.components if c.name == cell), 0
        for place, (_, counts) in enumerate(phases):
            n, amount = counts[cell]
            ends = before % component.sequences, (before := before + n) % component.sequences
            exact = len(held) == 1 or not amount or ends == (0, 0)
            for value, part in _in_whole_parts(amount, {value: pair[1] for value, pair in held.items()}).items():
                mine = sums.setdefault(value, [0, 0, [0] * len(phases), [True] * len(phases)])
                mine[2][place] += part
                mine[3][place] &= exact
        for value, (documents, tokens) in held.items():
            sums[value][0] += documents
            sums[value][1] += tokens
    rows = []
    whole = [sum(amounts[2][place] for amounts in sums.values()) for place in range(len(phases))]
    for value, (documents, tokens, parts, exact) in sums.items():
        read = sum(parts)
        row = [value, documents, tokens, read if all(exact) else f"≈ {read}", share(read, sum(whole))]
        row.append(decimal(Fraction(read, tokens), 2))
        for place in range(len(phases)) if len(phases) > 1 else ():
            row += [parts[place] if exact[place] else f"≈ {parts[place]}", share(parts[place], whole[place])]
        rows.append(row)
    return rows


def _in_whole_parts(amount: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Give each its share rounded down, then one more to those that lack most, as to seats of a parliament."""
    exact = {name: Fraction(amount * weight, sum(weights.values())) for name, weight in weights.items()}
    seats = {name: int(value) for name, value in exact.items()}
    lacks = sorted(exact, key=lambda name: (seats[name] - exact[name], name.startswith("no "), name))
    for name in lacks[: amount - sum(seats.values())]:
        seats[name] += 1
    return seats


def _draws(n: int, total: int, read: int, tokens: int) -> Row:
    return [share(n, total), n, read, tokens, decimal(Fraction(read, tokens), 2)]


def grid(books: Books, what: str, name: str) -> dict[tuple[str, str], int]:
    """Return (topic, level) → amount."""
    if name in books.outputs:
        query = """SELECT topic, quality_level::VARCHAR, count(*), sum(characters)::INT FROM docs
                   WHERE stage = ? AND topic IS NOT NULL AND quality_level IS NOT NULL GROUP BY ALL"""
        place = 2 if what == "documents" else 3
        return {(row[0], row[1]): row[place] for row in books.rows(query, books.outputs[name])}
    reads = {name: sum(counts[name][1] for _, counts in drawn(books)) for _, name in books.cells()}
    found = {}
    for (_, cell), made in books.cells().items():
        topic, _, level = cell.removeprefix("topic=").rpartition("/quality_level=")
        n = cell_query(books, cell, made["dataset"])[0]
        found[topic, level] = {"tokens": made["tokens"], "documents": n}.get(what, reads[cell])
    return found


def shares(books: Books, told: Told, what: str, name: str) -> Rows:
    amounts = grid(books, what, name)
    total = sum(amounts.values())
    levels = [column.removeprefix("quality_level=") for column in told["columns"][1:-1]]
    return [
        [
            topic,
            *(share(amounts[topic, at], total) if (topic, at) in amounts else "–" for at in levels),
            share(sum(n for (mine, _), n in amounts.items() if mine == topic), total),
        ]
        for topic in {topic for topic, _ in amounts}
    ]


def enrichment(books: Books, told: Told, what: str, name: str) -> Rows:
    amounts = grid(books, what, name)
    total = sum(amounts.values())
    levels = [column.removeprefix("quality_level=") for column in told["columns"][1:]]
    rows: Rows = []
    for topic in {topic for topic, _ in amounts}:
        row = sum(n for (mine, _), n in amounts.items() if mine == topic)
        sums = [sum(n for (_, mine), n in amounts.items() if mine == at) for at in levels]
        values = [
            decimal(Fraction(amounts.get((topic, at), 0) * total, row * column), 2) if row * column else "–"
            for at, column in zip(levels, sums, strict=True)
        ]
        rows.append([topic, *values])
    return rows


def drawn_hosts(books: Books, told: Told, name: str) -> Rows:
    query = """WITH placed AS (SELECT topic, quality_level::VARCHAR AS level, host, row_number() OVER (
            PARTITION BY topic, quality_level ORDER BY id) AS place FROM docs WHERE stage = ? AND host IS NOT NULL
            AND topic IS NOT NULL AND quality_level IS NOT NULL)
        SELECT topic, level, string_agg(DISTINCT host, ', ' ORDER BY host) FROM placed WHERE place <= 4 GROUP BY ALL"""
    found = {(topic, level): told_ for topic, level, told_ in books.rows(query, books.outputs[name])}
    levels = [column.removeprefix("quality_level=") for column in told["columns"][1:]]
    return [[topic, *(found.get((topic, at), "–") for at in levels)] for topic in {topic for topic, _ in found}]


def split(count: Callable[[Books, Told, str, str], Rows]) -> Callable[[Books, Told, str], Rows]:
    """Return a recount of a caption that names what is counted and of what."""
    return lambda books, told, named: count(books, told, *named.split(" in cells of ", 1))


def lengths(books: Books, told: Told, output: str) -> Rows:
    """Count each length that is shown: bins between the first and the last that has documents."""
    query = """SELECT greatest(16, 2 ** (floor(log2(greatest(characters, 1))) + 1))::INT AS top, count(*) FROM docs
               WHERE stage = ? GROUP BY top"""
    bins = dict(books.rows(query, books.outputs[output]))
    tops = [2**power for power in range(4, 25) if min(bins) <= 2**power <= max(bins)]
    return [
        [f"{0 if top == 16 else grouped(top // 2)} to {grouped(top - 1)} characters", bins.get(top, 0),
         share(bins.get(top, 0), sum(bins.values()))]
        for top in tops
    ]  # fmt: skip


def kept_and_dropped(books: Books, told: Told, _: str) -> Rows:
    """Count the texts of all outputs, and those that the ledger says were dropped, by length."""
    held = [stage for stage, made in books.stages.items() if made["operation"].get("operation") == "hold out"]
    there = list(books.outputs.values())
    bin_of = "greatest(16, 2 ** (floor(log2(greatest(characters, 1))) + 1))::INT"
    query = f"SELECT {bin_of}, count(*) FROM docs WHERE stage IN ({_marks(there)}) GROUP BY 1"
    kept = dict(books.rows(query, *there))
    query = f"""SELECT {bin_of}, count(*) FROM ledger WHERE kind = 'dropped' AND transform NOT LIKE 'read_%'
                AND text_digest IS NOT NULL AND stage NOT IN ({_marks(held)}) GROUP BY 1"""
    gone = dict(books.rows(query, *held))
    rows = []
    for top in (2**power for power in range(4, 25) if min({*kept, *gone}) <= 2**power <= max({*kept, *gone})):
        n, lost = kept.get(top, 0), gone.get(top, 0)
        name = f"{0 if top == 16 else grouped(top // 2)} to {grouped(top - 1)} characters"
        rows.append([name, n, lost, share(lost, n + lost)])
    return rows


def months(books: Books, told: Told, output: str) -> Rows:
    query = f"SELECT {MONTH}, count(*) AS many, sum(many) OVER ()::INT FROM docs WHERE stage = ? GROUP BY ALL"
    return [[month, n, share(n, of)] for month, n, of in books.rows(query, books.outputs[output])]


MONTH: Final = "coalesce(strftime(crawled_at, '%Y-%m'), 'not known')"


def kept_by(expression: str) -> Callable[[Books, Told, str], Rows]:
    """Return what counts the texts of all outputs by `expression`: all its values are rows, with those that went."""

    def count(books: Books, told: Told, _: str) -> Rows:
        there = list(books.outputs.values())
        query = f"SELECT {expression} AS value, count(*) FROM docs WHERE stage IN ({_marks(there)}) GROUP BY 1"
        kept = {value: n for value, n in books.rows(query, *there) if value is not None}
        rows = []
        for name, *_rest in told["rows"]:
            code = re.search(r"\((\S+)\)$", name)  # "English (en)"
            rows.append([name, kept.pop(code[1] if code else name, 0), APART, APART])
        assert not kept
        return rows

    return count


JUDGED: Final = """FROM ledger l JOIN docs d ON d.stage = l.stage
    AND lower(hex(d.id)) = json_extract_string(l.evidence, '$.survivor') WHERE l.stage = ? AND l.kind = 'dropped'"""
"""What went for a document of a stage, and that one."""


def who_for_whom(books: Books, told: Told, stage: str) -> Rows:
    found = books.rows(f"SELECT l.source, d.source, count(*) {JUDGED} GROUP BY ALL", books.stage(stage))
    counts = {(goes, stays): n for goes, stays, n in found}
    sides = [column.removeprefix("kept one is of ") for column in told["columns"][1:]]
    return [[goes, *(counts.get((goes, stays), "–") for stays in sides)] for goes in sides]


def clusters(books: Books, stage: str) -> list[tuple[str, int]]:
    """Return survivor and documents of each cluster."""
    query = f"SELECT lower(hex(d.id)), count(*) + 1 {JUDGED} GROUP BY d.id"
    return [(name, n) for name, n in books.rows(query, books.stage(stage))]


def cluster_sizes(books: Books, told: Told, stage: str) -> Rows:
    found = [n for _, n in clusters(books, stage)]
    rows: Rows = []
    for name, least, most in (("2", 2, 2), ("3", 3, 3), ("4 to 5", 4, 5), ("6 to 10", 6, 10), ("11 to 20", 11, 20)):
        if mine := [n for n in found if least <= n <= most]:
            rows.append([name, len(mine), share(len(mine), len(found)), sum(mine)])
    return rows


def largest_clusters(books: Books, told: Told, stage: str) -> Rows:
    return [list(row) for row in sorted(clusters(books, stage), key=lambda row: (-row[1], row[0]))[:10]]


def input_files(books: Books, told: Told, _: str) -> Rows:
    listed = str(books.root / books.folder / "provenance" / "inputs.jsonl")
    query = "SELECT source, count(*), sum(bytes)::INT FROM read_json(?) GROUP BY source"
    return [[source, files, size, APART] for source, files, size in books.rows(query, listed)]


GONE: Final = "the ledger has no months and languages: tests/curate/test_who.py holds them against rows"
WENT: Final = {"Dropped": GONE, "Dropped of both": GONE}
NO_ROWS: Final = "no file has them row by row"
CARD: Final = "from the card of a fitted model, measured on documents it was judged by: its own tests count again"
TEXT: Final = "words and digests, no number"

TABLES: Final[Sequence[Recount | NotRecounted]] = (
    Recount("What came out", came_out),
    NotRecounted("Checks", "sentences: those with numbers of files are in FINDINGS"),
    Recount("Licences of what training reads", licences_read),
    Recount("Licences of (.*)", licences),
    Recount("Opt-out signals of (.*): answers and documents", optouts),
    Recount("All sources", all_sources),
    Recount("Which filters take most away", filters, {"Tokens, estimated": "estimates: never tokenized"}),
    Recount("What edits cut out of documents that stay", cuts, {"Tokens, estimated": "estimates: never tokenized"}),
    NotRecounted("Documents that fail two rules of .*", f"the ledger has the first rule alone: {NO_ROWS}"),
    Recount("Records, refusals and gaps of (.*)", what_files_hold),
    Recount("(.*) through each step", through_steps),
    Recount("Why documents of (.*) go", why_documents_go),
    Recount("What is changed in (.*)", what_is_changed),
    Recount("Near misses by rule", near_misses),
    Recount(
        "Benchmarks looked for",
        benchmarks,
        {"Items too short or plain to find": "a judgement of the transform", "Fields": TEXT, "File": TEXT},
    ),
    Recount("Found in (.*)", leaks, {"Documents left": f"what is left is no row of the ledger: {NO_ROWS}"}),
    NotRecounted("Items found by .*", "evidence names items as ranges, what is left is in no ledger: see test_rules"),
    Recount("Components by phase", components),
    NotRecounted("Keys of the orders", "tests/viewers/test_steps.py has the steps that follow from them"),
    NotRecounted("Languages of .*", "these fixtures have no languages: tested in test_languages"),
    NotRecounted("What filters take from each language", "as the tables filter by filter: tested in test_languages"),
    NotRecounted("Most unequal of all", "the same rows as the tables filter by filter"),
    NotRecounted("GopherQuality in .*, by what documents are", "scripts of texts that no file keeps"),
    Recount(
        "(.*), by what documents are",
        by_length,
        {"95 % interval": "Wilson's formula, tested in test_who_loses against its definition"},
    ),
    Recount("What each source loses", source_loses),
    NotRecounted("Pairs", f"{NO_ROWS}; tests/curate/deduplication compares them with brute force"),
    Recount("How unequal hosts are", unequal_hosts),
    Recount("Largest hosts of (.*)", largest_hosts),
    Recount("Masked in (.*)", masked),
    NotRecounted(
        "Personal data: how well each kind is found", "of texts made for it: benchmarks.pii_cases counts them again"
    ),
    Recount("Held out by (.*)", held_out),
    Recount("Token caches", caches, {"Unknown tokens": "the tokenizer of these fixtures has none: tested in caches"}),
    NotRecounted("Ids in use and longest documents", "tests/curate/test_caches_build.py counts them in the tokens"),
    Recount("Special tokens that stand in texts, encoded as text", special),
    NotRecounted("Tokenizers, models and caches", TEXT),
    Recount("Losses of (.*)", losses),
    Recount("Share of (.*)", split(shares)),
    Recount("Enrichment of (.*)", split(enrichment)),
    Recount("Hosts of drawn documents in cells of (.*)", drawn_hosts),
    Recount(
        "Stages", stages, {"Made from": TEXT, "Content digest": "of logical values: curate verify counts it again"}
    ),
    NotRecounted("Inputs", "the sums of Records, refusals and gaps of each source"),
    NotRecounted("Versions", TEXT),
    Recount("What training reads by (.*)", read_values),
    Recount("Documents of (.*) by tokens", by_tokens),
    Recount("Which sources duplicates are of, in (.*)", who_for_whom),
    Recount("Sizes of clusters in (.*)", cluster_sizes),
    Recount("Largest clusters in (.*)", largest_clusters),
    NotRecounted("Recall measured in .*", "tests/transforms/test_banding_sample.py counts pairs one by one"),
    NotRecounted("Recall of bands in .*", "a formula: tests/transforms/test_banding_curve.py holds it against pairs"),
    Recount("Lengths of (.*)", lengths),
    Recount("Lengths, kept against dropped", kept_and_dropped),
    Recount("Months of crawling, kept against dropped", kept_by(MONTH), WENT),
    Recount("Languages, kept against dropped", kept_by("language"), WENT),
    NotRecounted(".*, kept against dropped", "the name of the rows is not told: the two above"),
    NotRecounted(
        "Documents by their value, in quarters of the threshold",
        "values of what is kept are in no file: tests/transforms/test_spread.py counts them one by one",
    ),
    Recount("Months of crawling of (.*)", months),
    NotRecounted("What the first step of each phase reads", "tests/viewers/test_steps.py compares every step"),
    NotRecounted("Seeds", "from the configuration of stages and plan"),
    NotRecounted("Datasheet", TEXT),
    Recount("Input files by source", input_files, {"Digest of the list": TEXT}),
    NotRecounted("What this page answers itself", "repeats counts and findings of other tables"),
    NotRecounted(".*, by size of hosts", "needs the addresses of what was dropped, which the ledger does not keep"),
    NotRecounted("Templates, left out of every comparison", f"{NO_ROWS}; the tests of templates count them by force"),
    NotRecounted("What the classifier is worth|Calibration|Features that tell most|Levels of .*", CARD),
    NotRecounted("Topics, of the documents looked at", CARD),
    NotRecounted("Parts of the recipe|What leaving it out does", "from trainings: tests of the ablation count again"),
    NotRecounted("Notes on .*", TEXT),
)
"""First match counts."""


def recount_of(caption: str) -> tuple[Recount | NotRecounted, str] | None:
    """Return how the table of this caption is counted again, and what its caption names."""
    for one in TABLES:
        if match := re.fullmatch(one.caption, caption):
            return one, next(iter(match.groups()), "")
    return None


def findings(books: Books) -> dict[str, str]:
    """Return check → finding, of checks about what files hold."""
    outputs = list(books.outputs.values())
    there = f"stage IN ({', '.join('?' * len(outputs))})"
    n, unknown = books.rows(f"SELECT count(*), sum(licence = 'unknown')::INT FROM docs WHERE {there}", *outputs)[0]
    answers = " + ".join(f"(optout.{s} = 'not checked')::INT" for s in ("robots_txt", "robots_meta", "tdm"))
    unchecked = int(books.one(f"SELECT sum({answers}) FROM docs WHERE {there}", *outputs))
    robots = books.one(f"SELECT sum((optout.robots_txt <> 'not checked')::INT) FROM docs WHERE {there}", *outputs)
    reached = books.one(f"SELECT count(DISTINCT source) FROM docs WHERE {there}", *outputs)
    quarantined = books.one("SELECT count(*) FROM ledger WHERE reason LIKE 'quarantined%'")
    cells = books.cells()
    told = {
        "licences-known": f"unknown for {unknown} of {n} documents ({share(unknown, n).replace('%', ' %')})",
        "optout-checked": f"{share(unchecked, 3 * n)} of answers are “not checked” ({unchecked} of {3 * n})"
        + ("" if robots else "; robots.txt was checked for no document"),
        "sources-reach-outputs": f"{reached} of {len(sources(books))} sources reach an output",
        "quarantine-empty": f"{quarantined} documents quarantined: no step could be applied to them",
    }
    if read := licences_read(books, {}, ""):
        nobody = sum(row[4] for row in read if row[1] == "unknown")
        of_all = share(nobody, sum(row[4] for row in read)).replace("%", " %")
        told["licences-known"] += f", and for {of_all} of the tokens that training reads"
    if cells:
        told["caches-complete"] = f"{sum(c['documents'] for c in cells.values())} documents in {len(cells)} caches"
    return {check: squeezed(finding) for check, finding in told.items()}


def squeezed(text: str) -> str:
    """Return `text` without white space and plurals."""
    return re.sub(r"\bsource\b", "sources", re.sub(r"(?<=\d)\s+(?=[\d%])", "", text)).replace(" ", "")


def totals(books: Books) -> dict[str, int]:
    """Return the totals of the report."""
    outputs = list(books.outputs.values())
    there = f"stage IN ({', '.join('?' * len(outputs))})"
    n, characters = books.rows(f"SELECT count(*), sum(characters)::INT FROM docs WHERE {there}", *outputs)[0]
    return {
        "records": sum(read_and_refused(books, source)[0] for source in sources(books)),
        "documents": n,
        "characters": characters,
        "tokens": sum(cell["tokens"] for cell in books.cells().values()),
        "sources": len(sources(books)),
    }
