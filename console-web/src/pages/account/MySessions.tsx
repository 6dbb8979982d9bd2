/** Where I am signed in. */
import { Flex, Typography, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { $api, client, type Schema } from "../../api/client";
import { Confirm } from "../../parts/Confirm";
import { BY_BEFORE, itemsOf, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Word } from "../../parts/Tags";
import { useAction } from "../../parts/useAction";

type Session = Schema<"Session">;

function end(id: string) {
  return client.DELETE("/account/sessions/{id}", { params: { path: { id } } });
}

/** Ends all but the one that asks, page by page. */
async function endOthers(): Promise<void> {
  let before: string | undefined;
  do {
    const { data } = await client.GET("/account/sessions", { params: { query: { limit: 500, before } } });
    for (const session of data?.items ?? []) if (!session.current) await end(session.id);
    before = data?.next ?? undefined;
  } while (before !== undefined);
}

function Ending({ session }: { session: Session }) {
  const { t } = useTranslation("people");
  const { run } = useAction();
  if (session.current) return <Word tone="good">{t("account.current")}</Word>;
  return (
    <Confirm
      danger={false}
      label={t("account.end")}
      question={t("account.end_question")}
      consequence={t("account.end_text")}
      button={{ size: "small" }}
      onConfirm={() => run(() => end(session.id))}
    />
  );
}

export function MySessions() {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { run } = useAction();
  const pages = $api.useInfiniteQuery("get", "/account/sessions", { params: { query: { limit: 100 } } }, BY_BEFORE);
  const hasOthers = itemsOf(pages).some(({ current }) => !current);
  const columns: NonNullable<TableProps<Session>["columns"]> = [
    { title: t("account.used"), key: "used", width: 150, render: (_, { used_at }) => <Moment at={used_at} exactness="minute" /> },
    { title: t("account.address"), key: "address", width: 160, render: (_, { address }) => <span className="mono">{address}</span> },
    { title: t("account.agent"), key: "agent", width: 260, ellipsis: true, render: (_, { agent }) => <span title={agent}>{agent}</span> },
    { title: t("account.begun"), key: "begun", width: 150, render: (_, { created_at }) => <Moment at={created_at} exactness="minute" /> },
    { title: t("account.ends"), key: "ends", width: 150, render: (_, { expires_at }) => <Moment at={expires_at} exactness="minute" /> },
    { title: common.t("actions"), key: "end", width: 120, render: (_, session) => <Ending session={session} /> },
  ];
  return (
    <Flex vertical gap="middle">
      <Flex justify="space-between" align="center" gap="small" wrap>
        <Typography.Text>{t("account.sessions_text")}</Typography.Text>
        {hasOthers && (
          <Confirm label={t("account.end_others")} question={t("account.end_others_question")} consequence={t("account.end_others_text")} danger={false} onConfirm={() => run(endOthers)} />
        )}
      </Flex>
      <List<Session>
        label={t("account.sessions")}
        pages={pages}
        rowKey={({ id }) => id}
        columns={columns}
        card={(session) => (
          <Flex vertical gap="small" align="start">
            <span>
              {t("account.used")}: <Moment at={session.used_at} exactness="minute" />
            </span>
            <span className="mono">{session.address}</span>
            <Typography.Text type="secondary">{session.agent}</Typography.Text>
            <Ending session={session} />
          </Flex>
        )}
      />
    </Flex>
  );
}
