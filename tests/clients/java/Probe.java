import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * An xxl-job executor without Spring, for carillon's system tests: its handlers do what their names say, and tell each
 * start, interrupt and end on stdout as one line of JSON. See ../README.md; {@code Library} is what differs between versions.
 */
public final class Probe {
    /** A run, whichever version of the library brought it. */
    interface Run {
        String param();

        long log();

        int index();

        int total();

        void write(String line);
    }

    interface Handler {
        /** Returns the answer of a run that succeeded. */
        String run(Run run) throws Exception;
    }

    /** A failure that a handler answers, unlike an exception that happens to it. */
    static final class Failure extends Exception {
        private static final long serialVersionUID = 1;

        Failure(String message) {
            super(message);
        }
    }

    /** What the process is told by its environment. */
    static final class Settings {
        final String admin = needed("PROBE_ADMIN");
        final String token = optional("PROBE_TOKEN", "");
        final String app = needed("PROBE_APP");
        final String ip = optional("PROBE_IP", "127.0.0.1");
        final int port = Integer.parseInt(needed("PROBE_PORT"));
        final String logs = needed("PROBE_LOGS");

        private static String needed(String name) {
            String value = optional(name, "");
            if (value.isEmpty()) {
                System.err.println("probe: " + name + " is missing");
                System.exit(2);
            }
            return value;
        }

        private static String optional(String name, String otherwise) {
            String value = System.getenv(name);
            return value == null ? otherwise : value;
        }
    }

    private static final long SLOW_EXIT_WAITS_MS = 60_000;
    private static final Gson JSON = new GsonBuilder().disableHtmlEscaping().create();
    private static final Map<String, Handler> HANDLERS = new LinkedHashMap<>();

    static {
        HANDLERS.put("echo", run -> {
            run.write(run.param());
            return run.param();
        });
        HANDLERS.put("shard", run -> {
            String shard = run.index() + "/" + run.total();
            run.write(shard);
            return shard;
        });
        HANDLERS.put("sleep", run -> {
            pause("sleep", run, Long.parseLong(run.param()));
            return "slept";
        });
        HANDLERS.put("stubborn", run -> {
            long until = System.nanoTime() + Long.parseLong(run.param()) * 1_000_000;
            for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
                try {
                    pause("stubborn", run, left / 1_000_000 + 1);
                } catch (InterruptedException ignored) {
                    // That is what it is for.
                }
            }
            return "stubborn to the end";
        });
        HANDLERS.put("fail", run -> {
            throw new Failure(run.param().isEmpty() ? "asked to fail" : run.param());
        });
        HANDLERS.put("throw", run -> {
            throw new IllegalStateException(run.param().isEmpty() ? "asked to throw" : run.param());
        });
        HANDLERS.put("lines", run -> {
            String[] asked = run.param().split(",");
            int count = Integer.parseInt(asked[0]);
            for (int line = 1; line <= count; line++) {
                run.write("line " + line + " of " + count);
                if (asked.length > 1) {
                    pause("lines", run, Long.parseLong(asked[1]));
                }
            }
            return count + " lines";
        });
        HANDLERS.put("slow_exit", run -> {
            try {
                pause("slow_exit", run, SLOW_EXIT_WAITS_MS);
            } catch (InterruptedException asked) {
                Thread.sleep(Long.parseLong(run.param()));
                throw asked;
            }
            return "nobody asked";
        });
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = new Settings();
        Runnable stop = Library.start(settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            tell("stopping", new JsonObject());
            stop.run();
            tell("stopped", new JsonObject());
        }));
        tell("up", new JsonObject());
        // The library's own threads need not keep the process alive.
        Thread.currentThread().join();
    }

    /** Runs a handler between the lines that tell of it. */
    static String run(String handler, Run run) throws Exception {
        tell("start", about(handler, run));
        String result = "thrown";
        try {
            String answer = HANDLERS.get(handler).run(run);
            result = "succeeded";
            return answer;
        } catch (Failure failure) {
            result = "failed";
            throw failure;
        } catch (InterruptedException interrupt) {
            result = "interrupted";
            throw interrupt;
        } finally {
            JsonObject line = about(handler, run);
            line.addProperty("result", result);
            tell("end", line);
        }
    }

    private static void pause(String handler, Run run, long ms) throws InterruptedException {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException interrupt) {
            tell("interrupt", about(handler, run));
            throw interrupt;
        }
    }

    private static JsonObject about(String handler, Run run) {
        JsonObject line = new JsonObject();
        line.addProperty("handler", handler);
        line.addProperty("log", run.log());
        line.addProperty("param", run.param());
        line.addProperty("index", run.index());
        line.addProperty("total", run.total());
        return line;
    }

    private static void tell(String event, JsonObject more) {
        JsonObject line = new JsonObject();
        line.addProperty("event", event);
        more.entrySet().forEach(field -> line.add(field.getKey(), field.getValue()));
        synchronized (System.out) {
            line.addProperty("at", System.currentTimeMillis());
            System.out.println(JSON.toJson(line));
            System.out.flush();
        }
    }
}
