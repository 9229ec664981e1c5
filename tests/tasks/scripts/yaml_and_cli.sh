# The hottest hours: temperature rises for six hours, by eight degrees or more. A pattern file, and the command line.
cat > warm_up.yaml <<'PATTERN'
name: warm_up
stages:
  - begin: start
  - next: rise
    where: temp > coalesce(rise.temp, start.temp)
    times: 6
    consecutive: true
  - next: warm
    where: temp > start.temp + 8
skip: past_last_event
PATTERN
cepheid check warm_up.yaml --events "$VEGA/sf-temps.csv" --time date --time-format '%Y/%m/%d %H:%M:%S'
cepheid detect warm_up.yaml "$VEGA/sf-temps.csv" --time date --time-format '%Y/%m/%d %H:%M:%S' \
  --measure 'low=start.temp' --measure 'high=warm.temp' --output matches.csv
