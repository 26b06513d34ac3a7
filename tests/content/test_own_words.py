"""Texts of one's own: right sentences make their point, wrong ones none."""

from __future__ import annotations

import pytest
import yaml

from readerkit.app.quiz_banks import QuizBanks
from readerkit.quiz.kinds.short import Short
from tests.helpers import ROOT

RIGHT = {
    1: """\
Every rank sends about twice the gradient size no matter how many ranks there are.
What each rank sends approaches 2x the message and does not grow with N.
Per-GPU communication is roughly 2S regardless of N.
Each GPU transfers 2(N-1)/N times the buffer.
What a rank sends is almost the same for 8 or 800 ranks, about twice the tensor.
The traffic per link is nearly constant in N.
A rank sends 2 (n-1)/n of its data, so below two times the buffer.
Each rank moves at most 2M bytes.
Cada rank envía casi el doble del tensor, sean cuantos sean los ranks.
El tráfico por rank no depende de N.
Lo que envía cada rank tiende a dos veces el tensor.
However many ranks there are, each one sends just under two copies of the tensor.
Per rank the bytes converge to 2S as N grows.
Data sent per GPU is 2*(N-1)/N*S, which saturates at 2S.
Adding ranks hardly changes what each of them has to send.
""",
    2: """\
There are 2(N-1) steps and each pays a latency.
Latency grows linearly with the number of ranks.
Every hop costs a fixed alpha, and there are 2(N-1) of them.
The fixed cost per step adds up: 2(N-1) steps in sequence.
Startup overhead is paid at each of the 2(N-1) steps.
The number of steps grows with N, each with its own latency.
The alpha term scales with N.
Hay 2(N-1) pasos y cada uno paga su latencia.
La latencia total crece con el número de ranks.
El coste fijo de cada paso se paga 2(N-1) veces.
More ranks mean more sequential steps and each has latency.
N ranks take 2(N-1) steps, so 2(N-1) latencies.
The latency term is proportional to N.
Con N ranks hay 2(N-1) latencias.
""",
    3: """\
With large buckets the time is bytes over bandwidth, latency is negligible.
For big messages, the bandwidth term dominates.
When the payload is large, the transfer time is far above the latency.
Gradient buckets are tens of megabytes, so the link speed decides.
Latency is small compared with the time to send the bytes of a big bucket.
Big buffers amortise the latency.
Con cubos grandes domina el ancho de banda.
Con mensajes grandes la latencia es despreciable frente a la transferencia.
With 25 MB buckets the bytes/bandwidth term is much larger than the latency term.
For large tensors it is bandwidth-bound.
En tensores grandes cuenta el ancho de banda.
""",
    4: """\
For small messages over many ranks a tree is better, with log N steps.
Small payloads become latency-bound; NCCL then switches to a tree.
It stops for small messages on many nodes: a tree of logarithmic depth is faster.
With tiny tensors the 2(N-1) latencies dominate and trees win.
A double binary tree takes only log2(N) steps and is preferable for small tensors.
Para mensajes pequeños gana un árbol, con profundidad log N.
Con muchos ranks y poco que enviar manda la latencia, y un árbol es mejor.
At small sizes and high rank counts latency dominates, so a tree is used.
For small messages use a tree.
Con tensores chicos conviene un árbol.
""",
}
"""Of `col-ring-short`, by its point."""
WRONG = """\
Each rank sends N-1 times the tensor.
Bytes per rank grow linearly with the number of ranks, so bandwidth decides.
The latency does not depend on N.
Latency is constant whatever N.
A tree wins for large messages.
Small buckets are bound by bandwidth.
Large messages are dominated by latency.
A ring is always better than a tree, even for small messages.
The number of steps is 2 whatever N is.
The latency is the same for each number of ranks.
The rank sends its bytes to two neighbours.
Each rank waits for the slowest of N ranks.
Big buckets are dominated by latency and small ones by bandwidth.
El tráfico por rank crece con N.
La latencia no depende de N.
Un árbol gana con mensajes grandes.
Traffic per rank is twice as large with twice the ranks.
Steps do not grow with N.
The latency is negligible at any size.
Each rank sends to all the others, so it does not depend on the network.
Bandwidth is constant and does not grow with N.
Each step sends the whole tensor, 2(N-1) times.
Latency grows with the size of the tensor.
Trees need twice the bandwidth.
The tree is slower for small messages.
Bytes per rank shrink as 1/N.
Each rank sends the bucket once.
Twice the bandwidth halves the time.
Con muchos ranks el anillo gana al árbol.
"""
BOTH = """\
With big buckets bandwidth dominates, with small ones latency dominates.
Large buckets are bandwidth-bound, small ones are latency-bound.
Big buckets are dominated by bandwidth and small ones are dominated by latency.
"""


TYPED = yaml.safe_load((ROOT / "tests/content/own_words.yaml").read_text("utf-8"))
"""By question and point, and under `wrong`: of the other explain-questions."""


@pytest.fixture(scope="module")
def bank():
    return QuizBanks(ROOT).bank(35)


@pytest.fixture(scope="module")
def asked(bank):
    return bank.variant("col-ring-short", 0)


def made(asked, text):
    return {each.number for each in asked.finding(text).points if each.found}


@pytest.mark.parametrize("point", RIGHT)
def test_right_sentences_make_their_point(asked, point):
    for text in RIGHT[point].splitlines():
        assert point in made(asked, text), text


def test_who_says_both_is_not_taken_to_deny_one(asked):
    for text in BOTH.splitlines():
        assert 3 in made(asked, text), text


def test_wrong_sentences_make_no_point(asked):
    assert [text for text in WRONG.splitlines() if made(asked, text)] == []


def test_every_explain_question_has_texts_for_each_point(bank):
    own = {id: q for id, q in bank.questions.items() if isinstance(q, Short)}
    assert set(TYPED) | {"col-ring-short"} == set(own)
    for name, texts in TYPED.items():
        assert set(texts) == {*range(1, len(own[name].rubric) + 1), "wrong"}, name


@pytest.mark.parametrize("name", TYPED)
def test_what_a_practitioner_types_makes_its_point(bank, name):
    variant = bank.variant(name, 0)
    for point, texts in TYPED[name].items():
        if point == "wrong":
            assert [text for text in texts if made(variant, text)] == []
        else:
            assert [text for text in texts if point not in made(variant, text)] == []


def test_points_of_one_text_do_not_undo_each_other(bank):
    for name, texts in TYPED.items():
        points = {each for each in texts if each != "wrong"}
        whole = " ".join(texts[point][0].rstrip(".") + "." for point in sorted(points))
        assert made(bank.variant(name, 0), whole) == points, name
