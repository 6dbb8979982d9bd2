import com.xxl.job.core.biz.model.ReturnT;
import com.xxl.job.core.executor.XxlJobExecutor;
import com.xxl.job.core.handler.annotation.XxlJob;
import com.xxl.job.core.handler.impl.MethodJobHandler;
import com.xxl.job.core.log.XxlJobFileAppender;
import com.xxl.job.core.log.XxlJobLogger;
import com.xxl.job.core.util.ShardingUtil;
import java.lang.reflect.Method;
import java.nio.file.Path;

/** The probe on xxl-job-core 2.2.0: a handler is a method that takes the parameter and returns its result. */
final class Library {
    /** Starts the executor, and returns what stops it. */
    static Runnable start(Probe.Settings settings) throws Exception {
        XxlJobExecutor executor = new XxlJobExecutor();
        executor.setAdminAddresses(settings.admin);
        executor.setAccessToken(settings.token);
        executor.setAppname(settings.app);
        executor.setIp(settings.ip);
        executor.setPort(settings.port);
        executor.setLogPath(settings.logs);
        executor.setLogRetentionDays(-1);
        // Only its Spring executor looks for annotated methods by itself.
        Handlers handlers = new Handlers();
        for (Method method : Handlers.class.getDeclaredMethods()) {
            XxlJob named = method.getAnnotation(XxlJob.class);
            if (named != null) {
                XxlJobExecutor.registJobHandler(named.value(), new MethodJobHandler(handlers, method, null, null));
            }
        }
        executor.start();
        return executor::destroy;
    }

    public static final class Handlers {
        @XxlJob("echo")
        public ReturnT<String> echo(String param) throws Exception {
            return run("echo", param);
        }

        @XxlJob("shard")
        public ReturnT<String> shard(String param) throws Exception {
            return run("shard", param);
        }

        @XxlJob("sleep")
        public ReturnT<String> sleep(String param) throws Exception {
            return run("sleep", param);
        }

        @XxlJob("stubborn")
        public ReturnT<String> stubborn(String param) throws Exception {
            return run("stubborn", param);
        }

        @XxlJob("fail")
        public ReturnT<String> fail(String param) throws Exception {
            return run("fail", param);
        }

        @XxlJob("throw")
        public ReturnT<String> throwAway(String param) throws Exception {
            return run("throw", param);
        }

        @XxlJob("lines")
        public ReturnT<String> lines(String param) throws Exception {
            return run("lines", param);
        }

        @XxlJob("slow_exit")
        public ReturnT<String> slowExit(String param) throws Exception {
            return run("slow_exit", param);
        }
    }

    private static ReturnT<String> run(String handler, String param) throws Exception {
        try {
            return new ReturnT<>(ReturnT.SUCCESS_CODE, Probe.run(handler, new Current(param)));
        } catch (Probe.Failure failure) {
            return new ReturnT<>(ReturnT.FAIL_CODE, failure.getMessage());
        }
    }

    private static final class Current implements Probe.Run {
        private final String param;
        // It tells the number of the log only by the name of its file.
        private final long log = Long.parseLong(
                Path.of(XxlJobFileAppender.contextHolder.get()).getFileName().toString().replace(".log", ""));
        private final ShardingUtil.ShardingVO shard = ShardingUtil.getShardingVo();

        Current(String param) {
            this.param = param;
        }

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
            return shard.getIndex();
        }

        @Override
        public int total() {
            return shard.getTotal();
        }

        @Override
        public void write(String line) {
            XxlJobLogger.log("{}", line);
        }
    }
}
