import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.executor.impl.XxlJobSimpleExecutor;
import com.xxl.job.core.handler.annotation.XxlJob;
import java.nio.file.Path;
import java.util.List;

/** The probe on xxl-job-core 2.3.0 and later: a handler is an annotated method, and says its result by a helper. */
final class Library {
    /** Starts the executor, and returns what stops it. */
    static Runnable start(Probe.Settings settings) {
        XxlJobSimpleExecutor executor = new XxlJobSimpleExecutor();
        executor.setAdminAddresses(settings.admin);
        executor.setAccessToken(settings.token);
        executor.setAppname(settings.app);
        executor.setIp(settings.ip);
        executor.setPort(settings.port);
        executor.setLogPath(settings.logs);
        executor.setLogRetentionDays(-1);
        executor.setXxlJobBeanList(List.of(new Handlers()));
        executor.start();
        return executor::destroy;
    }

    public static final class Handlers {
        @XxlJob("echo")
        public void echo() throws Exception {
            run("echo");
        }

        @XxlJob("shard")
        public void shard() throws Exception {
            run("shard");
        }

        @XxlJob("sleep")
        public void sleep() throws Exception {
            run("sleep");
        }

        @XxlJob("stubborn")
        public void stubborn() throws Exception {
            run("stubborn");
        }

        @XxlJob("fail")
        public void fail() throws Exception {
            run("fail");
        }

        @XxlJob("throw")
        public void throwAway() throws Exception {
            run("throw");
        }

        @XxlJob("lines")
        public void lines() throws Exception {
            run("lines");
        }

        @XxlJob("slow_exit")
        public void slowExit() throws Exception {
            run("slow_exit");
        }
    }

    private static void run(String handler) throws Exception {
        try {
            XxlJobHelper.handleSuccess(Probe.run(handler, new Current()));
        } catch (Probe.Failure failure) {
            XxlJobHelper.handleFail(failure.getMessage());
        }
    }

    /** Versions 3 tell it; before, the name of the log's file does. */
    private static long numberOfLog() {
        try {
            try {
                return (long) XxlJobHelper.class.getMethod("getLogId").invoke(null);
            } catch (NoSuchMethodException older) {
                String file = (String) XxlJobHelper.class.getMethod("getJobLogFileName").invoke(null);
                return Long.parseLong(Path.of(file).getFileName().toString().replace(".log", ""));
            }
        } catch (ReflectiveOperationException unknown) {
            throw new IllegalStateException(unknown);
        }
    }

    private static final class Current implements Probe.Run {
        private final String param = XxlJobHelper.getJobParam();
        private final long log = numberOfLog();
        private final int index = XxlJobHelper.getShardIndex();
        private final int total = XxlJobHelper.getShardTotal();

        @Override
        public String param() {
            return param == null ? "" : param;
        }

        @Override
        public long log() {
            return log;
        }

        @Override
        public int index() {
            return index;
        }

        @Override
        public int total() {
            return total;
        }

        @Override
        public void write(String line) {
            XxlJobHelper.log("{}", line);
        }
    }
}
