/** The door of an app for executors of xxl-job: whether it is open, its tokens, who has come in, and what is different for them. */
import { Button, Card, Flex, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { isDoorOpen, librariesOf } from "../../lib/xxljob";
import { Failure } from "../../parts/Failure";
import { BY_AFTER, itemsOf, List, type Pages } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Word } from "../../parts/Tags";
import { KeyEnds, KeyState, USES_MS } from "./keyParts";
import { NewToken } from "./NewToken";
import { PlainExecutors } from "./PlainExecutors";
import { RevokeKey } from "./RevokeKey";
import { TokenOnce } from "./TokenOnce";

type Key = Schema<"Key">;

/** More are counted, not shown. */
const EXECUTORS = 500;

export function Door({ app }: { app: Schema<"App"> }) {
  const { t } = useTranslation("xxljob");
  const { may } = useSession();
  const scope = { tenant: app.tenant, app: app.id };
  const [isMaking, setIsMaking] = useState(false);
  const [made, setMade] = useState<Schema<"CreatedKey">>();
  const pages = $api.useInfiniteQuery("get", "/apps/{id}/keys", { params: { path: { id: app.id } } }, { ...BY_AFTER, refetchInterval: USES_MS });
  const keys = itemsOf(pages);
  const isOpen = isDoorOpen(keys);
  return (
    <section aria-label={t("door.title")} aria-busy={pages.isPending}>
      <Card
        size="small"
        title={<h2 className="card-title">{t("door.title")}</h2>}
        extra={may("keys.create", scope) && <Button onClick={() => setIsMaking(true)}>{t(isOpen ? "door.another" : "door.open_it")}</Button>}
      >
        <Flex vertical gap="middle">
          <Failure error={pages.error} again={() => void pages.refetch()} />
          {pages.data !== undefined && (
            <div>
              <Word tone={isOpen ? "good" : "idle"}>{t(isOpen ? "door.open" : "door.closed")}</Word>
              <span className="beside">{t(isOpen ? "door.open_help" : "door.closed_help", { app: app.name })}</span>
            </div>
          )}
          {keys.some(({ kind }) => kind === "token") && <Tokens app={app} pages={pages} />}
          {isOpen && <Came app={app} />}
        </Flex>
      </Card>
      {isMaking && <NewToken app={app} onCreated={setMade} onClose={() => setIsMaking(false)} />}
      {made !== undefined && <TokenOnce app={app} token={made.secret} onClose={() => setMade(undefined)} />}
    </section>
  );
}

function Tokens({ app, pages }: { app: Schema<"App">; pages: Pages<Key> }) {
  const { t: common } = useTranslation();
  const { t } = useTranslation("xxljob");
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const tokens = itemsOf(pages).filter(({ kind }) => kind === "token");
  const isLast = tokens.filter(({ state }) => state === "valid").length === 1;
  const revoke = (key: Key) => key.state === "valid" && may("keys.revoke", { tenant: app.tenant, app: app.id }) && <RevokeKey of={key} isLast={isLast} />;
  const columns: TableProps<Key>["columns"] = [
    { title: t("token.for"), key: "note", width: 190, render: (_, key) => <Name of={key} /> },
    { title: own("keys.state"), key: "state", width: 90, render: (_, key) => <KeyState state={key.state} /> },
    { title: own("keys.last_used"), key: "used", width: 130, render: (_, key) => <Moment at={key.last_used_at} relative otherwise={common("never")} /> },
    {
      title: common("created_at"),
      key: "created",
      width: 180,
      render: (_, key) => (
        <>
          <Moment at={key.created_at} exactness="minute" />
          <div className="soft">{`${own("keys.created_by")} ${key.created_by}`}</div>
        </>
      ),
    },
    { title: own("keys.ends"), key: "ends", width: 150, render: (_, key) => <KeyEnds of={key} /> },
    { title: common("actions"), key: "actions", width: 100, render: (_, key) => revoke(key) },
  ];
  return (
    <List<Key>
      label={t("token.list")}
      pages={pages}
      items={tokens}
      rowKey={(key) => key.id}
      columns={columns}
      card={(key) => (
        <Flex vertical gap={4} align="start">
          <Flex gap="small" wrap>
            <Name of={key} />
            <KeyState state={key.state} />
          </Flex>
          <span>
            {`${own("keys.last_used")}: `}
            <Moment at={key.last_used_at} relative otherwise={common("never")} />
          </span>
          <span>
            {`${common("created_at")}: `}
            <Moment at={key.created_at} exactness="minute" />
          </span>
          {revoke(key)}
        </Flex>
      )}
    />
  );
}

/** What a token is for; where nobody has said it, its id. */
function Name({ of }: { of: Key }) {
  return (
    <>
      {of.note !== "" && <div>{of.note}</div>}
      <span className="mono soft">{of.id}</span>
    </>
  );
}

/** Who has come in by it. */
function Came({ app }: { app: Schema<"App"> }) {
  const { may } = useSession();
  const { data, error, refetch } = $api.useQuery(
    "get",
    "/executors",
    { params: { query: { tenant: app.tenant, app: app.name, limit: EXECUTORS } } },
    { enabled: may("executors.read", { tenant: app.tenant, app: app.id }) },
  );
  if (data === undefined && error === null) return null;
  const plain = (data?.items ?? []).filter((executor) => executor.plain);
  return <PlainExecutors app={app} executors={plain} libraries={librariesOf(plain)} error={error} again={() => void refetch()} isKnown={data !== undefined} />;
}
