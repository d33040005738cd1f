"""One server makes a task, and another one is asked about it, in each of the dialects.
A check is a function of a World: A and B are servers on one store, and B has not been
told that the task runs on A."""
import threading
import time

import wire

PATIENCE_SECONDS = 15
LONG = {"count": 1000000, "size": 60, "paceUs": 20000}
SHORT = {"count": 30, "size": 200, "paceUs": 10000}
STREAMING = {"elicitation": {},
             "tasks": {"responses": {"modes": ["task", "immediate", "streaming"]}}}
RESUMABLE = {"elicitation": {}, "resumableRequests": {}}
ANSWER = {"action": "accept", "content": {"name": "Ada"}}


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def until(look, what):
    """Calls `look` until it returns something."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what}")


def texts_of(content):
    return [block["text"] for block in content]


def expect_numbers(texts, first, last):
    numbers = [int(text.split()[0]) for text in texts]
    expect(numbers == list(range(first, last + 1)), f"segments {numbers}")


def expect_answer(texts):
    expect(len(texts) == 1 and "Ada" in texts[0], f"the result is {texts}")


def expect_let_go(world, before):
    """Checks that the tool on A was told to stop."""
    until(lambda: world.a.let_go > before, "the run on A is told to stop")


# ---- X, and E on it ----


def make(world, tool="weave", arguments=None):
    client = wire.Modern(world.a.port)
    task = client.ask("tools/call", name=tool, arguments=arguments or SHORT)
    expect(task["resultType"] == "task", f"no task: {task}")
    return client, wire.Modern(world.b.port), task["taskId"]


def ended(client, task):
    def look():
        answer = client.ask("tasks/get", taskId=task)
        return answer if answer["status"] not in ("working", "input_required") else None

    return until(look, "the task ends")


def x_get(world):
    _, b, task = make(world)
    expect(b.ask("tasks/get", taskId=task)["status"] == "working", "it does not work")
    answer = ended(b, task)
    expect(answer["status"] == "completed", f"{answer}")
    expect_numbers(texts_of(answer["result"]["content"]), 1, SHORT["count"])


def x_get_by_way_of_nginx(world):
    """The load balancer chooses the server."""
    client = wire.Modern(world.port)
    for _ in range(8):
        task = client.ask("tools/call", name="weave", arguments=SHORT)["taskId"]
        answer = ended(client, task)
        expect_numbers(texts_of(answer["result"]["content"]), 1, SHORT["count"])


def x_update(world):
    a, b, task = make(world, "ask")

    def asked():
        return b.ask("tasks/get", taskId=task).get("inputRequests")

    questions = until(asked, "a question")
    b.ask("tasks/update", taskId=task, inputResponses={key: ANSWER for key in questions})
    for client in a, b:
        answer = ended(client, task)
        expect(answer["status"] == "completed", f"{answer}")
        expect_answer(texts_of(answer["result"]["content"]))


def x_cancel(world):
    before = world.a.let_go
    a, b, task = make(world, arguments=LONG)
    b.ask("tasks/cancel", taskId=task)
    for client in b, a:
        answer = ended(client, task)
        expect(answer["status"] == "cancelled", f"{answer}")
    expect_let_go(world, before)


def events(client, task, **more):
    """Returns (texts, last seq)."""
    texts, last = [], None
    with client.open("tasks/stream", {"taskId": task, **more}) as exchange:
        for _, message in exchange.messages():
            if message.get("id") == exchange.number:
                wire.result_of(message)
                return texts, last
            last = message["params"]["seq"]
            texts += texts_of(message["params"]["payload"]["content"])
    raise AssertionError("the stream has no end")


def e_stream(world):
    _, b, task = make(world)
    texts, _ = events(b, task)
    expect_numbers(texts, 1, SHORT["count"])


def e_resume(world):
    """Reads a part of the stream on A, the rest on B."""
    a, b, task = make(world)
    seen, last = [], None
    with a.open("tasks/stream", {"taskId": task}) as exchange:
        for _, message in exchange.messages():
            last = message["params"]["seq"]
            seen += texts_of(message["params"]["payload"]["content"])
            if len(seen) >= 5:
                break
    rest, _ = events(b, task, after=last)
    expect_numbers(seen + rest, 1, SHORT["count"])
    whole = ended(a, task)["result"]["content"]
    expect(texts_of(whole) == seen + rest, "the result is another")


# ---- L, and S on it ----


def sessions(world, capabilities, version="2025-11-25"):
    """Opens one session at A, which B knows only by its id."""
    session = wire.Handshake(world.a.port, version, capabilities)
    return session, session.at(world.b.port)


def make_2025(world, tool="weave", arguments=None, modes=None, capabilities=None):
    a, b = sessions(world, capabilities or {"elicitation": {}, "tasks": {}})
    task = {"responseModes": modes} if modes else {}
    answer = a.ask("tools/call", name=tool, arguments=arguments or SHORT, task=task)
    return a, b, answer["task"]["taskId"]


def l_get_and_result(world):
    a, b, task = make_2025(world)
    expect(b.ask("tasks/get", taskId=task)["status"] == "working", "it does not work")
    answers = [client.ask("tasks/result", taskId=task) for client in (b, a)]
    expect_numbers(texts_of(answers[0]["content"]), 1, SHORT["count"])
    expect(answers[0]["content"] == answers[1]["content"], "the results differ")


def l_cancel(world):
    before = world.a.let_go
    a, b, task = make_2025(world, arguments=LONG)
    expect(b.ask("tasks/cancel", taskId=task)["status"] == "cancelled", "not cancelled")
    expect(ended(a, task)["status"] == "cancelled", "not so on A")  # at once, or nearly
    expect_let_go(world, before)


def l_question(world):
    """The client is asked where it waits for the result."""
    _, b, task = make_2025(world, "ask")
    with b.open("tasks/result", {"taskId": task}) as exchange:
        for _, message in exchange.messages():
            if message.get("method") == "elicitation/create":
                b.post({"jsonrpc": "2.0", "id": message["id"], "result": ANSWER}).close()
            elif message.get("id") == exchange.number:
                expect_answer(texts_of(wire.result_of(message)["content"]))
                return
    raise AssertionError("no result")


def s_fetch(world):
    """Fetches segments of a running task by number."""
    _, b, task = make_2025(world, modes=["streaming"], capabilities=STREAMING)
    seen = []
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        params = ({"lastSeqNr": len(seen)} if seen
                  else {"_meta": {"dev.segue/fromSeqNr": 1}})
        answer = b.ask("tasks/result", taskId=task, **params)
        seen += texts_of(answer["partial-content"])
        if answer["isComplete"]:
            break
        time.sleep(0.02)
    expect_numbers(seen, 1, SHORT["count"])


# ---- D ----


def make_draft(world, tool="weave", arguments=None):
    a, b = sessions(world, {"elicitation": {}}, "DRAFT-2026-v1")
    answer = a.ask("tools/call", name=tool, arguments=arguments or SHORT)
    return a, b, answer["task"]["taskId"]


def d_get(world):
    _, b, task = make_draft(world)
    expect(b.ask("tasks/get", taskId=task)["status"] == "working", "it does not work")
    answer = ended(b, task)
    expect_numbers(texts_of(answer["result"]["content"]), 1, SHORT["count"])


def d_answer(world):
    a, b, task = make_draft(world, "ask")

    def asked():
        return b.ask("tasks/get", taskId=task).get("inputRequests")

    questions = until(asked, "a question")
    answer = b.ask("tasks/get", taskId=task,
                   inputResponses={key: ANSWER for key in questions})
    expect(answer["status"] != "input_required", f"{answer}")
    expect_answer(texts_of(ended(a, task)["result"]["content"]))


def d_cancel(world):
    before = world.a.let_go
    a, b, task = make_draft(world, arguments=LONG)
    expect(b.ask("tasks/cancel", taskId=task)["status"] == "cancelled", "not cancelled")
    expect(ended(a, task)["status"] == "cancelled", "not so on A")  # at once, or nearly
    expect_let_go(world, before)


# ---- Z ----


def cut_off(world, tool, arguments):
    """Makes a call on A and cuts it off when its client knows how to resume it."""
    a, b = sessions(world, RESUMABLE)
    with a.open("tools/call", {"name": tool, "arguments": arguments}) as exchange:
        for _, message in exchange.messages():
            if message.get("method") == "notifications/requests/resumePolicy":
                return a, b, exchange.number, message["params"]["resumeToken"]
    raise AssertionError("no policy")


def z_resume(world):
    _, b, number, token = cut_off(world, "weave", SHORT)
    exchange = b.open("requests/resume", {"resumeToken": token}, number=number)
    result = wire.answer_of(exchange, number)
    expect_numbers(texts_of(result["content"]), 1, SHORT["count"])


def z_status(world):
    _, b, number, token = cut_off(world, "weave", SHORT)
    ask = {"requestId": number, "resumeToken": token}
    status = b.ask("requests/getStatus", **ask)
    expect(status["status"] == "processing", f"{status}")
    until(lambda: b.ask("requests/getStatus", **ask)["status"] == "completed", "its end")
    result = wire.answer_of(b.open("requests/resume", {"resumeToken": token},
                                   number=number), number)
    expect_numbers(texts_of(result["content"]), 1, SHORT["count"])


def z_question(world):
    """The client is asked again on B, and its answer reaches the call."""
    _, b, number, token = cut_off(world, "ask", {})
    with b.open("requests/resume", {"resumeToken": token}, number=number) as exchange:
        for _, message in exchange.messages():
            if message.get("method") == "elicitation/create":
                b.post({"jsonrpc": "2.0", "id": message["id"], "result": ANSWER}).close()
            elif message.get("id") == number and "method" not in message:
                expect_answer(texts_of(wire.result_of(message)["content"]))
                return
    raise AssertionError("no result")


def z_cancel(world):
    before = world.a.let_go
    _, b, number, token = cut_off(world, "weave", LONG)
    exchange = b.open("requests/resume", {"resumeToken": token}, number=number)
    reader = wire.reading(exchange, lambda event, message: None)
    time.sleep(0.2)
    b.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": number}}).close()
    expect_let_go(world, before)
    exchange.close()
    reader.join(PATIENCE_SECONDS)


# ---- sessions ----


def l_by_way_of_nginx(world):
    """Each request of the session goes to the next server."""
    session = wire.Handshake(world.port, capabilities=STREAMING)
    for _ in range(8):
        task = session.ask("tools/call", name="weave", arguments=SHORT,
                           task={"responseModes": ["streaming"]})["task"]["taskId"]
        expect(session.ask("tasks/get", taskId=task)["status"] == "working", "it is over")
        result = session.ask("tasks/result", taskId=task)
        expect_numbers(texts_of(result["content"]), 1, SHORT["count"])


# ---- many at once ----


def many_followers(world):
    """Many clients read one task on both servers."""
    _, _, task = make(world)
    found = []

    def follow(port):
        found.append(events(wire.Modern(port), task)[0])

    threads = [threading.Thread(target=follow, args=(port,), daemon=True)
               for port in (world.a.port, world.b.port, world.port) * 10]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    expect(len(found) == len(threads), f"{len(found)} of {len(threads)} came to the end")
    expect_numbers(found[0], 1, SHORT["count"])
    expect(all(texts == found[0] for texts in found), "they saw different things")


CHECKS = [x_get, x_get_by_way_of_nginx, x_update, x_cancel, e_stream, e_resume,
          l_get_and_result, l_cancel, l_question, s_fetch, d_get, d_answer, d_cancel,
          z_resume, z_status, z_question, z_cancel, l_by_way_of_nginx, many_followers]
