/** The executors of an app that are online, in short. */
import { Card, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { EXECUTOR_TONES, stateOf } from "../../lib/executor";
import { useLink } from "../../lib/tenant";
import { Failure } from "../../parts/Failure";
import { Word } from "../../parts/Tags";

/** More are counted, not shown. */
const SHOWN = 10;
const COUNTED = 500;

export function AppExecutors({ app }: { app: Schema<"App"> }) {
  const { t: own } = useTranslation("executors");
  const { t: xxljob } = useTranslation("xxljob");
  const link = useLink();
  const { data, error, refetch } = $api.useQuery("get", "/executors", { params: { query: { tenant: app.tenant, app: app.name, limit: COUNTED } } });
  const all = data?.items ?? [];
  const toAll = link("/executors", { tenant: app.tenant, app: app.name });
  const count = data?.next != null ? own("apps.executors_more", { n: COUNTED }) : own("apps.executors_online", { n: all.length });
  return (
    <Card size="small" title={<h2 className="card-title">{own("apps.executors")}</h2>} extra={all.length > 0 && <Link to={toAll}>{own("apps.show_executors")}</Link>}>
      <Failure error={error} again={() => void refetch()} />
      {data !== undefined && all.length === 0 && own("apps.executors_none")}
      {all.length > 0 && (
        <Flex vertical gap="small">
          <span>{count}</span>
          {all.slice(0, SHOWN).map((executor) => (
            <Flex key={executor.id} gap="small" wrap>
              <Link to={link("/executors", { tenant: app.tenant, app: app.name, executor: executor.id })}>{executor.address}</Link>
              <Word tone={EXECUTOR_TONES[stateOf(executor)]}>{own(`executors.state.${stateOf(executor)}`)}</Word>
              <span className="soft number">{executor.plain ? xxljob("executors.load", executor) : own("executors.load_short", executor)}</span>
            </Flex>
          ))}
        </Flex>
      )}
    </Card>
  );
}
