"""What the measuring programs in this folder share."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def build_program():
    subprocess.run([ROOT / "scripts/build-program"], check=True)
    return ROOT / "build/program/cli/echopipe"


def make_photos(program, folder, images):
    if not folder.exists():
        print(f"making photos in {folder} ...", file=sys.stderr)
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([program, "demo-data", folder, "--images", str(images)], check=True,
                       stdout=subprocess.DEVNULL)
    return folder


def run_with_timeline(program, photos, link, flags):
    """Over a link with these flags of bench/netlab: the run's figures, and its timeline's lines."""
    with tempfile.TemporaryDirectory() as folder:
        timeline = pathlib.Path(folder) / "timeline"
        words = [str(program), "run", "--source", "{URL}", *flags, "--timeline", str(timeline),
                 "-q", "--json"]
        command = " ".join(f"'{word}'".replace("{URL}", "'\"$NETLAB_URL\"'") for word in words)
        lab = [ROOT / "bench/netlab", *link, "--serve", photos, "--", "sh", "-c",
               "exec " + command]
        out = subprocess.run(lab, check=True, stdout=subprocess.PIPE, text=True).stdout
        lines = [json.loads(line) for line in timeline.read_text(encoding="utf-8").splitlines()]
    return json.loads(out), lines


def output_of(*command):
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True,
                          cwd=ROOT).stdout.strip()


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def machine(program):
    return {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)),
            "load_average": os.getloadavg()[0],
            "date": datetime.date.today().isoformat(),
            "echopipe": output_of(program, "--version"),
            "commit": output_of("git", "rev-parse", "--short", "HEAD")}


def check_claims(claims):
    """Prints each claim and whether it holds; true if all do."""
    for claim, holds in claims.items():
        print(f"{'holds' if holds else 'FAILS'}: {claim}")
    return all(claims.values())


def write_results(path, program, command, rows, runs):
    """`command` is a list of words."""
    quoted = " ".join(f"'{word}'" if " " in word else word for word in command)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"machine": ' + json.dumps(machine(program)) + ",\n")
        file.write('"command": ' + json.dumps(quoted) + ",\n")
        for name, items in (("summary", rows), ("runs", runs)):
            lines = ",\n".join(json.dumps(item) for item in items)
            file.write(f'"{name}": [\n{lines}\n]' + ("}\n" if name == "runs" else ",\n"))
