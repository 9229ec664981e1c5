# Gaps: a share opens more than ten percent below the close of the day before. The file is compressed, its times are dates.
cat > gap.yaml <<'PATTERN'
name: gap
stages:
  - begin: before
  - next: gap
    where: Open < 0.9 * before.Close
PATTERN
cepheid detect gap.yaml "$BOKEH/stocks.csv.gz" --key Ticker --time Date --measure 'open=gap.Open' --output gaps.csv
