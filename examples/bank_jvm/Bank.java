import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import larder.Codec;
import larder.LarderLongTable;
import larder.LarderSnapshot;
import larder.LarderTable;
import larder.LarderTransaction;
import larder.LarderView;

/**
 * A bank on the JVM: transfers, an auditor, requests that are remembered for a while.
 *
 * <pre>
 *   tellers ── transactions ───────────> accounts   number to cents
 *           ── once a request ─────────> requests   text to 1, for two seconds
 *   auditor <── snapshots ── accounts               the sum never varies
 * </pre>
 *
 * A transfer is a transaction on two accounts: nobody sees the one without the other. So each
 * snapshot has the same sum, while transfers go on. A client sends some requests twice; putIfAbsent
 * lets one of the two through. Old requests expire.
 *
 * <p>`Bank ACCOUNTS SECONDS TELLERS` ends with status 1 if anything is wrong.
 */
public final class Bank {
    private static final long OPENING = 10_000;
    private static final Duration REMEMBERED = Duration.ofSeconds(2);

    private final LarderLongTable accounts = LarderLongTable.builder(-1).name("accounts").open();
    private final LarderTable<String, Long> requests = LarderTable.builder(Codec.STRING, Codec.LONG)
            .name("requests")
            .ttl(REMEMBERED)
            .open();
    private final LarderTransaction onAccounts = LarderTransaction.on(accounts);
    private final AtomicReference<Throwable> wrong = new AtomicReference<>();
    private final int size;
    private final long end;

    private Bank(int size, long seconds) {
        this.size = size;
        for (long number = 0; number < size; number++) {
            accounts.set(number, OPENING);
        }
        end = System.nanoTime() + seconds * 1_000_000_000L;
    }

    private boolean isOpen() {
        return System.nanoTime() - end < 0 && wrong.get() == null;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** What a teller did. */
    private static final class Count {
        long transfers;
        long twice;
    }

    private void teller(int teller, Count count) {
        SplittableRandom random = new SplittableRandom(teller);
        for (long n = 0; isOpen(); n++) {
            String request = teller + "-" + n;
            int times = random.nextInt(4) == 0 ? 2 : 1;
            int done = 0;
            long from = random.nextInt(size), to = random.nextInt(size);
            long cents = 1 + random.nextInt(500);
            long begin = System.nanoTime();
            for (int i = 0; i < times; i++) {
                if (requests.putIfAbsent(request, cents) == null) {
                    done += transfer(from, to, cents) ? 1 : 0;
                } else {
                    count.twice++;
                }
            }
            // It is remembered from then on for so long, however long the thread was held up.
            boolean remembered = System.nanoTime() - begin < REMEMBERED.toNanos();
            check(done <= 1 || !remembered, "a request was done twice: " + request);
            count.transfers += done;
        }
    }

    private boolean transfer(long from, long to, long cents) {
        return onAccounts.call(views -> {
            LarderView<Long, Long> balances = views.of(accounts);
            long has = balances.getOrDefault(from, -1L);
            check(has >= 0, "an account is missing: " + from);
            if (from == to || has < cents) {
                return false;
            }
            balances.addAndGet(from, -cents);
            balances.addAndGet(to, cents);
            return true;
        });
    }

    private long audits() {
        long audits = 0;
        do {
            try (LarderSnapshot<Long, Long> now = accounts.snapshot()) {
                long sum = 0, met = 0;
                for (long cents : now.values()) {
                    check(cents >= 0, "a balance below 0: " + cents);
                    sum += cents;
                    met++;
                }
                check(met == size && sum == size * OPENING, met + " accounts have " + sum);
            }
            audits++;
        } while (isOpen());
        return audits;
    }

    private Thread start(Runnable work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                wrong.compareAndSet(null, e);
            }
        });
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws InterruptedException {
        Bank bank = new Bank(Integer.parseInt(args[0]), Long.parseLong(args[1]));
        List<Thread> threads = new ArrayList<>();
        List<Count> counts = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            int teller = i;
            Count count = new Count();
            counts.add(count);
            threads.add(bank.start(() -> bank.teller(teller, count)));
        }
        long[] audits = {0};
        threads.add(bank.start(() -> audits[0] = bank.audits()));
        for (Thread thread : threads) {
            thread.join();
        }
        long transfers = counts.stream().mapToLong(count -> count.transfers).sum();
        long twice = counts.stream().mapToLong(count -> count.twice).sum();
        System.out.printf(
                "bank: %d transfers, %d requests came twice and were done once, %d remembered,"
                        + " %d audits%n",
                transfers, twice, bank.requests.size(), audits[0]);
        bank.accounts.close();
        bank.requests.close();
        if (bank.wrong.get() != null) {
            bank.wrong.get().printStackTrace();
            System.exit(1);
        }
    }
}
