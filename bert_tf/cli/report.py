"""Write report.html of a run, a study, a grid or a benchmark, or one page on which several runs are compared.

pretrain, finetune, study, glue and superglue write the page themselves. This command writes it for a run that is not
finished, or that was trained before there were reports, and for several runs together: their curves are laid over each
other. The page is one file without scripts; it needs no model, only the records of the run.

example:
  bert-tf report run
  bert-tf report with_pretraining without_pretraining --output both.html

in Python:
  from bert_tf.reporting import write_report
  write_report("with_pretraining", "without_pretraining", output="both.html")
"""


def add_arguments(parser):
    add = parser.add_argument
    add("runs", nargs="+", metavar="RUN", help="run directories, or the folder of one study, grid or benchmark")
    add("--output", metavar="FILE", help="the HTML file (default: report.html in the folder of the run)")


def run(arguments):
    from bert_tf.reporting import write_report

    print(write_report(*arguments.runs, output=arguments.output))
