"""redc run --batch from Python: many runs by a few processes that keep their device."""
import os
import re
import shlex
import subprocess
import tempfile


def run(redc, lines, common=(), jobs=None, timeout=120, progress=None):
    """Yields (exit status, output) of each run, in order. `lines`: lists of arguments behind `common`. A run that crashed, or did not end
    in `timeout` seconds, has a status below 0."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="red-batch-") as f:
        f.write("".join(shlex.join(line) + "\n" for line in lines))
        f.flush()
        command = [os.path.abspath(redc), "run", f"--batch={f.name}", f"--timeout={timeout}", f"--jobs={jobs or os.cpu_count()}", *common]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
            number, status, said, done = 0, None, [], 0
            for text in process.stdout:
                head = re.match(r"(\d+): (ok|exit status (\d+)|no end after .*|ended by signal \d+)$", text)
                if text.startswith("  "):
                    said.append(text[2:])
                elif head:
                    if status is not None:
                        yield status, "".join(said)
                        done += 1
                    number, said = int(head.group(1)), []
                    status = 0 if head.group(2) == "ok" else int(head.group(3)) if head.group(3) else -1
                    if status < 0:
                        said.append(head.group(2) + "\n")
                    if number != done + 1:
                        raise RuntimeError(f"run {done + 1} has no result")
            if status is not None:
                yield status, "".join(said)
                done += 1
        if done != len(lines):
            raise RuntimeError(f"{len(lines)} runs, {done} results: redc run --batch ended with status {process.returncode}")
