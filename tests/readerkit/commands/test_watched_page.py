"""A run that is watched, as a page of the served site."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from mini_impls.run_table import LATE
from readerkit.app.interface_translation import say_in
from readerkit.site.run_page import beside
from tests.helpers import WAIT_S
from tests.readerkit.commands.test_site_http import serve

RUN = [sys.executable, "-m", "readerkit", "run", "ddp", "--watch", "--steps"]


@pytest.fixture
def page(tmp_path, monkeypatch) -> Iterator[Callable[..., str]]:
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    with serve(tmp_path) as server:

        def ask(path: str = "/-/run") -> str:
            connection = HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
            with closing(connection):
                connection.request("GET", path)
                return connection.getresponse().read().decode()

        yield ask
        assert "Traceback" not in server.said()


def table(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in rows
    ]


@pytest.mark.further
def test_a_run_is_shown_while_it_goes_on_when_it_ends_and_when_it_is_killed(page):
    assert "No run has been watched yet" in page()

    done = subprocess.run([*RUN, "5"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shown = page("/-/run/now")
    assert "readerkit run ddp" in shown and "the run has ended" in shown
    english, *ranks = table(re.sub(r"<span[^>]*lang=.?es.*?</span>", "", shown))
    assert [row[0] for row in ranks] == ["0", "1", "all"]
    # The page says what the terminal says.
    told = done.stdout.partition("The last step that was looked at:\n")[2]
    rows = [row.split() for row in told.splitlines()[: len(ranks) + 1]]
    assert rows == [" ".join(filter(None, row)).split() for row in (english, *ranks)]
    beside = re.findall(r'lang="?en"?>(rank .*?)</span>', shown)
    assert beside == [line for line in told.splitlines() if re.match(r"rank \d", line)]
    assert re.search(r'lang="?es"?>rank 0 junto al cálculo: calcula ', shown)

    # One process takes all steps first.
    process = subprocess.Popen([*RUN, "120"], stdout=subprocess.DEVNULL)
    try:
        _wait_until(lambda: "and it goes on" in page("/-/run/now"))
        assert page().count("<table") == 1
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_S)
    assert "the run was broken off" in page("/-/run/now")


def test_what_the_estimates_say_of_a_rank_is_said_in_spanish():
    line = (
        "rank 0 beside the estimate: computing 2.1 ms, 1.4 ms at 5.3 GFLOP/s of a "
        "product alone (1.50 times); sent 4 kB, 4 kB by formula (1.00 times); "
        "peak 9 MB, 3 MB of states alone (3.00 times); "
        "waiting 3%, bubble 4% by the schedule (0.75 times)"
    )
    assert beside(line, say_in("es")) == (
        "rank 0 junto al cálculo: calcula 2.1 ms, 1.4 ms a 5.3 GFLOP/s de un "
        "producto solo (1.50 veces); enviado 4 kB, 4 kB según la fórmula (1.00 veces); "
        "pico 9 MB, 3 MB solo de los estados (3.00 veces); "
        "espera 3%, burbuja 4% según el schedule (0.75 veces)"
    )


def test_why_more_is_sent_is_said_in_spanish():
    gloo = "as gloo makes all-reduces of reduce-scatters, and sends twice as much"
    line = f"sent 8 kB, 4 kB by formula (2.00 times), {gloo} for them"
    assert beside(line, say_in("es")) == (
        "enviado 8 kB, 4 kB según la fórmula (2.00 veces), "
        "pues gloo hace de los reduce-scatter all-reduce, y envía por ellos el doble"
    )
    line = "(1.56 times), with 518 bytes a call besides the tensors; peak 9 MB"
    assert beside(line, say_in("es")) == (
        "(1.56 veces), con 518 bytes por llamada además de los tensores; pico 9 MB"
    )


def test_a_wait_for_nothing_under_way_is_said_in_spanish():
    line = f"rank 1: waiting 77%, for 32% {LATE}"
    assert beside(line, say_in("es")) == (
        "rank 1: espera 77%, durante 32% del paso sin nada en marcha: un hilo del "
        "backend empieza, o Python despierta, tarde"
    )


def test_what_the_model_says_is_said_in_spanish():
    of = "step 2 s, 1 s (2.00 times); tokens/s 5, 10 (0.50 times); exposed 4 ms"
    told = "2 GFLOP/s in a training step alone, 3 µs a call, 4 MB/s sent, by rank 0"
    lines = [
        f"rank 1 beside the model: {of}",
        f"all ranks beside the model: {of}; resident 3 MB, 2 MB (1.50 times)",
        "the model: the sum of estimate step, with rates measured on this "
        f"machine before the run: {told}",
    ]
    of = "paso 2 s, 1 s (2.00 veces); tokens/s 5, 10 (0.50 veces); expuesto 4 ms"
    assert [beside(line, say_in("es")) for line in lines] == [
        f"rank 1 junto al modelo: {of}",
        f"todos los ranks junto al modelo: {of}; residente 3 MB, 2 MB (1.50 veces)",
        "el modelo: la suma de estimate step, con tasas medidas en esta "
        "máquina antes de la ejecución: 2 GFLOP/s en un paso de entrenamiento solo, "
        "3 µs por llamada, 4 MB/s enviado, por el rank 0",
    ]


def test_what_is_no_table_is_none(page):
    for left in (b"", b"{", b"[]", b'{"step": "x"}', b"\0" * 2_000_000):
        Path(os.environ["READERKIT_DATA"], "watched.json").write_bytes(left)
        assert "No run has been watched yet" in page()


def _wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)
