#!/usr/bin/env bash
# A stage that depends on CompletableFuture.orTimeout blocks all other timeouts of the Java
# process.
#
# Guess: `future.orTimeout(..).exceptionally(..)` runs on the common pool, as the stages of
# supplyAsync do, so one that works for a second delays nobody.
# Seen: it runs on the one thread that serves all timeouts of the process. Another future that is
# completed by completeOnTimeout after 500 ms is completed when the stage of the first ends.
# Versions: OpenJDK 17.0.15 and 25.0.3. The thread is CompletableFutureDelayScheduler before 25, and
# the scheduler of the common pool since then. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat > "$dir/Finding.java" << 'END'
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

class Finding {
    static void work() {
        String name = Thread.currentThread().getName();
        System.out.println("on a scheduler: " + name.matches("(?i).*DelayScheduler"));
        try {
            Thread.sleep(2_000);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    public static void main(String[] args) {
        System.err.println("java " + System.getProperty("java.version"));
        long begin = System.nanoTime();
        new CompletableFuture<Void>()
            .orTimeout(300, TimeUnit.MILLISECONDS)
            .whenComplete((value, error) -> work());
        new CompletableFuture<Void>()
            .completeOnTimeout(null, 500, TimeUnit.MILLISECONDS)
            .join();
        long took = (System.nanoTime() - begin) / 1_000_000;
        System.err.println("500 ms took " + took + " ms");
        System.out.println("500 ms took more than 2 s: " + (took > 2_000));
    }
}
END
java "$dir/Finding.java" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
on a scheduler: true
500 ms took more than 2 s: true
END
