"""The commands `quoth eval` and `quoth report`, which entry points plug into `quoth`."""

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from quoth.cli.records import flow_help
from quoth_eval.commands import entities, evaluate, likelihood, openqa, quick, report, suite

for _part in (openqa, entities, suite, likelihood, quick):
    evaluate.app.registered_commands += _part.app.registered_commands
for _app in (evaluate.app, report.app):
    flow_help(_app)
eval_command, report_command = get_command(evaluate.app), get_command(report.app)
for _command in (eval_command, report_command):
    assert isinstance(_command, (TyperCommand, TyperGroup))
    _command.rich_help_panel = "Train and measure"
