"""Plays scripted conversations with a `jp` binary and records what it sends, prints and stores.

`scripts/compare_conversations` is the program. The modules, in reading order:

- `scenario`: what a scenario is: files, answers of the model, and steps.
- `scenarios`: the scenarios themselves, one module per subject.
- `formats`: what a model streams, in each of the six wire formats.
- `server`: the server that plays the model and records requests.
- `play`: runs one scenario with one binary.
- `recording`: what is kept of a run, and how two recordings are compared.
- `clock`: the fixed clock.
"""
