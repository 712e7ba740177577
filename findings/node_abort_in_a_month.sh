#!/usr/bin/env bash
# A signal of Node that should abort in a month aborts at once.
#
# Guess: `AbortSignal.timeout` checks that its argument is at most 2^32 - 1, so it takes a month,
# and a request with this signal is not aborted within a second. The limit of 24.8 days is that of
# setTimeout.
# Seen: a month passes the check, and the timer behind the signal turns it into 1 ms. The signal is
# aborted with a TimeoutError, as if the month were over. A warning goes to the standard error.
# Versions: Node 24.11.1 of the npm package node. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" node@24.11.1 2> /dev/null
cat > "$dir/signal.js" << 'END'
console.log('Node', process.version);
const days = (n) => AbortSignal.timeout(n * 86_400_000);
const signals = { '24 days': days(24), 'a month': days(30) };
setTimeout(() => {
  for (const [name, signal] of Object.entries(signals)) {
    console.log(`${name}: ${signal.aborted ? signal.reason.name : 'pending'}`);
  }
}, 1_000);
END
"$dir/node_modules/.bin/node" "$dir/signal.js" 2> /dev/null > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
Node v24.11.1
24 days: pending
a month: TimeoutError
END
