import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Netty's HashedWheelTimer (tick 1 ms, 32,768 slots), the JDK's ScheduledThreadPoolExecutor with
 * setRemoveOnCancelPolicy, and the ForkJoinPool of JDK 25, which is a scheduler, as peers of the bench:
 * {@code Timers.java PEER WORKLOAD [--quick] [--n N] ..}. The workloads do the same as those in
 * timer-bench/src/workloads. Each runs once at a tenth of its size first, so that the code is compiled.
 */
class Timers {
    interface Timer {
        Object schedule(Runnable task, long nanos);

        void cancel(Object handle);

        void stop();
    }

    static final ThreadFactory DAEMON = task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    };

    static Timer netty() {
        HashedWheelTimer timer = new HashedWheelTimer(DAEMON, 1, TimeUnit.MILLISECONDS, 32_768);
        return new Timer() {
            public Object schedule(Runnable task, long nanos) {
                return timer.newTimeout(timeout -> task.run(), nanos, TimeUnit.NANOSECONDS);
            }

            public void cancel(Object handle) {
                ((Timeout) handle).cancel();
            }

            public void stop() {
                timer.stop();
            }
        };
    }

    static Timer jdk() {
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, DAEMON);
        timer.setRemoveOnCancelPolicy(true);
        return scheduler(timer);
    }

    static Timer forkJoin() {
        // The cast is possible from JDK 25 on. Older compilers do not know it.
        return scheduler((ScheduledExecutorService) (Object) new ForkJoinPool(1));
    }

    static Timer scheduler(ScheduledExecutorService timer) {
        return new Timer() {
            public Object schedule(Runnable task, long nanos) {
                return timer.schedule(task, nanos, TimeUnit.NANOSECONDS);
            }

            public void cancel(Object handle) {
                ((ScheduledFuture<?>) handle).cancel(false);
            }

            public void stop() {
                timer.shutdownNow();
            }
        };
    }

    /** SplitMix64, the generator of all delays. */
    static final class Random {
        long state;

        Random(long seed) {
            state = seed;
        }

        long next() {
            long mixed = state += 0x9e3779b97f4a7c15L;
            mixed = (mixed ^ (mixed >>> 30)) * 0xbf58476d1ce4e5b9L;
            mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
            return mixed ^ (mixed >>> 31);
        }

        /** The upper half of the product of an unsigned number and a bound below 2^63. */
        static long multiplyHigh(long number, long bound) {
            return Math.multiplyHigh(number, bound) + ((number >> 63) & bound);
        }

        long below(long bound) {
            return multiplyHigh(next(), bound);
        }

        long between(long from, long to) {
            return from + below(to - from);
        }
    }

    static final long MS = 1_000_000, SECOND = 1_000 * MS;
    static String peer, workload;
    static boolean silent;

    static Timer build() {
        return peer.startsWith("netty") ? netty() : peer.equals("jdk") ? jdk() : forkJoin();
    }

    static void print(String params, double value, String unit) {
        if (!silent) {
            System.out.printf("%s %s %s %.4f %s%n", peer, workload, params, value, unit);
        }
    }

    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** Waits until the process uses little CPU time. */
    static void quiet() throws Exception {
        for (int calm = 0, n = 0; calm < 5 && n < 1_000; n++) {
            long before = cpu();
            Thread.sleep(5);
            calm = cpu() - before < MS / 2 ? calm + 1 : 0;
        }
    }

    interface Body {
        void run(int thread) throws Exception;
    }

    /** Runs the body on threads at once and returns wall time and CPU time. */
    static long[] parallel(int threads, Body prepare, Body body) throws Exception {
        CyclicBarrier gate = new CyclicBarrier(threads + 1);
        for (int thread = 0; thread < threads; thread++) {
            int own = thread;
            DAEMON.newThread(() -> {
                try {
                    prepare.run(own);
                    gate.await();
                    body.run(own);
                    gate.await();
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            }).start();
        }
        gate.await();
        long begin = System.nanoTime(), before = cpu();
        gate.await();
        return new long[] {System.nanoTime() - begin, cpu() - before};
    }

    static String count(int n) {
        return n % 1_000_000 == 0 ? n / 1_000_000 + "M" : n % 1_000 == 0 ? n / 1_000 + "k" : "" + n;
    }

    static Object[] filled(Timer timer, int n, long from, long to) {
        Random random = new Random(42);
        AtomicLong ran = new AtomicLong();
        Object[] handles = new Object[n];
        for (int at = 0; at < n; at++) {
            handles[at] = timer.schedule(ran::incrementAndGet, random.between(from, to));
        }
        return handles;
    }

    static void shuffle(Object[] all) {
        Random random = new Random(43);
        for (int last = all.length - 1; last > 0; last--) {
            int other = (int) random.below(last + 1);
            Object one = all[last];
            all[last] = all[other];
            all[other] = one;
        }
    }

    static void schedule(int n, int threads) throws Exception {
        Timer timer = build();
        String params = "n=" + count(n) + ",threads=" + threads;
        for (String suffix : new String[] {"", "-again"}) {
            Object[][] handles = new Object[threads][n / threads];
            AtomicLong ran = new AtomicLong();
            long[] took = parallel(threads, thread -> {}, thread -> {
                Random random = new Random(42 + 0x9e3779b97f4a7c15L * ((long) n * thread / threads));
                for (int at = 0; at < handles[thread].length; at++) {
                    handles[thread][at] = timer.schedule(ran::incrementAndGet, random.between(10 * SECOND, 3600 * SECOND));
                }
            });
            long before = cpu();
            quiet();
            print(params, (double) took[0] / n, "ns/call" + suffix);
            if (suffix.isEmpty()) {
                print(params, (double) (took[1] + cpu() - before) / n, "cpu-ns/call");
            }
            for (Object[] some : handles) {
                for (Object handle : some) {
                    timer.cancel(handle);
                }
            }
            quiet();
        }
        timer.stop();
    }

    static void pair(int n, int threads) throws Exception {
        Timer timer = build();
        Object[][] windows = new Object[threads][1_000];
        AtomicLong ran = new AtomicLong();
        long[] took = parallel(threads, thread -> Arrays.setAll(windows[thread], at -> timer.schedule(ran::incrementAndGet, 30 * SECOND)), thread -> {
            for (int at = 0; at < n / threads; at++) {
                Object newest = timer.schedule(ran::incrementAndGet, 30 * SECOND);
                timer.cancel(windows[thread][at % 1_000]);
                windows[thread][at % 1_000] = newest;
            }
        });
        String params = "n=" + count(n) + ",threads=" + threads;
        print(params, (double) took[0] / n, "ns/pair");
        print(params, (double) took[1] / n, "cpu-ns/pair");
        timer.stop();
    }

    static void cancel(int n) throws Exception {
        Timer timer = build();
        Object[] handles = filled(timer, n, 10 * SECOND, 3600 * SECOND);
        quiet();
        shuffle(handles);
        long begin = System.nanoTime(), before = cpu();
        for (Object handle : handles) {
            timer.cancel(handle);
        }
        print("n=" + count(n), (double) (System.nanoTime() - begin) / n, "ns/cancel");
        quiet();
        print("n=" + count(n), (double) (cpu() - before) / n, "cpu-ns/cancel");
        timer.stop();
    }

    static void crowd(int n, long lead) throws Exception {
        Timer timer = build();
        Random random = new Random(42);
        AtomicLong ran = new AtomicLong(), last = new AtomicLong();
        long first = System.nanoTime() + lead;
        Runnable task = () -> {
            if (ran.incrementAndGet() == n) {
                last.set(System.nanoTime());
            }
        };
        for (int at = 0; at < n; at++) {
            timer.schedule(task, first + random.below(200 * MS) - System.nanoTime());
        }
        if (System.nanoTime() > first) {
            System.out.printf("%s %s - n/a - scheduling took too long%n", peer, workload);
            return;
        }
        LockSupport.parkNanos(first - System.nanoTime());
        long before = cpu();
        while (last.get() == 0 && System.nanoTime() < first + 30 * SECOND) {
            Thread.sleep(1);
        }
        print("n=" + count(n), (last.get() - first) / 1e6 - 200, "ms-late");
        print("n=" + count(n), (cpu() - before) / 1e9, "cpu-s");
        timer.stop();
    }

    static void lateness(int batches) throws Exception {
        Timer timer = build();
        Random random = new Random(42);
        long[] lags = new long[10 * batches];
        AtomicLong ran = new AtomicLong();
        long begin = System.nanoTime();
        for (int batch = 0; batch < batches; batch++) {
            LockSupport.parkNanos(begin + batch * MS + random.below(MS) - System.nanoTime());
            for (int one = 0; one < 10; one++) {
                int index = 10 * batch + one;
                long delay = random.between(MS, 100 * MS), due = System.nanoTime() + delay;
                timer.schedule(() -> {
                    lags[index] = System.nanoTime() - due;
                    ran.incrementAndGet();
                }, delay);
            }
        }
        long end = System.nanoTime() + 5 * SECOND;
        while (ran.get() < lags.length && System.nanoTime() < end) {
            Thread.sleep(1);
        }
        long early = Arrays.stream(lags).filter(lag -> lag < 0).count();
        Arrays.sort(lags);
        for (String params : new String[] {"tick=1ms", "tick=10us"}) {
            print(params, lags[lags.length / 2] / 1e3, "us-p50");
            print(params, lags[(int) (lags.length * 0.99)] / 1e3, "us-p99");
            print(params, lags[lags.length - 1] / 1e3, "us-max");
            print(params, early, "early");
        }
        timer.stop();
    }

    static void busy(long span, long lead) throws Exception {
        Timer timer = build();
        Random random = new Random(42);
        AtomicLong ran = new AtomicLong();
        long begin = System.nanoTime() + lead;
        for (long at = 0; at < span / 10_000; at++) {
            timer.schedule(ran::incrementAndGet, begin + random.below(span) - System.nanoTime());
        }
        int calls = (int) (span / 10_000);
        long[] nanos = new long[calls];
        Object[] handles = new Object[calls];
        for (int at = 0; at < calls; at++) {
            while (System.nanoTime() < begin + 10_000L * at) {
                Thread.onSpinWait();
            }
            long start = System.nanoTime();
            handles[at] = timer.schedule(ran::incrementAndGet, 3600 * SECOND);
            nanos[at] = System.nanoTime() - start;
        }
        if (ran.get() < calls / 2) {
            System.out.printf("%s %s - n/a - only %d of %d fired in time%n", peer, workload, ran.get(), calls);
            return;
        }
        Arrays.sort(nanos);
        for (double q : new double[] {0.5, 0.99, 0.999, 1}) {
            String unit = q == 1 ? "ns-max" : "ns-p" + (q == 0.5 ? "50" : q == 0.99 ? "99" : "99.9");
            print("fired=100k/s", nanos[(int) Math.min(calls * q, calls - 1)], unit);
        }
        timer.stop();
    }

    static void idle(int n, long millis) throws Exception {
        Timer timer = build();
        Object[] handles = filled(timer, n, 600 * SECOND, 3600 * SECOND);
        quiet();
        long before = cpu();
        Thread.sleep(millis);
        print("n=" + count(n), (cpu() - before) / 1e6 / (millis / 1e3), "cpu-ms/s");
        timer.stop();
    }

    static long used() throws Exception {
        for (int n = 0; n < 3; n++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    static void memory(int n) throws Exception {
        Timer timer = build();
        long before = used() + 4L * n;
        Object[] handles = filled(timer, n, 600 * SECOND, 3600 * SECOND);
        quiet();
        print("n=" + count(n), (double) (used() - before) / n, "B-heap");
        timer.cancel(handles[0]);
        timer.stop();
    }

    static int setting(String[] words, String name, int normal) {
        int at = Arrays.asList(words).indexOf("--" + name);
        boolean quick = Arrays.asList(words).contains("--quick");
        return at > 0 ? Integer.parseInt(words[at + 1].split(",")[0]) : quick ? normal / 10 : normal;
    }

    static void run(String[] words, int part) throws Exception {
        int million = setting(words, "n", 1_000_000) / part;
        switch (workload) {
            case "schedule":
                schedule(million, 1);
                schedule(million, 2);
                break;
            case "pair":
                for (int threads : new int[] {1, 2, 4}) {
                    pair(setting(words, "n", 2_000_000) / part, threads);
                }
                break;
            case "cancel":
                cancel(million);
                break;
            case "crowd":
                crowd(million, setting(words, "lead-ms", 2_000) * MS / part);
                break;
            case "lateness":
                lateness(setting(words, "ms", 3_000) / part);
                break;
            case "busy":
                busy(setting(words, "ms", 2_000) * MS / part, setting(words, "lead-ms", 500) * MS / part);
                break;
            case "idle":
                idle(1, setting(words, "ms", 3_000) / part);
                idle(million, setting(words, "ms", 3_000) / part);
                break;
            default:
                memory(million);
        }
    }

    public static void main(String[] words) throws Exception {
        peer = words[0];
        workload = words[1];
        silent = true;
        run(words, 10);
        silent = false;
        run(words, 1);
    }
}
