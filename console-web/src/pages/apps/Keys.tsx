/** The keys of an app's executors: those that work first. */
import { Button, Card, Flex, Tooltip, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { BY_AFTER, itemsOf, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { KeyEnds, KeyState, USES_MS } from "./keyParts";
import { NewKey } from "./NewKey";
import { RevokeKey } from "./RevokeKey";
import { RotateKeys } from "./RotateKeys";
import { SecretOnce } from "./SecretOnce";

type Key = Schema<"Key">;

export function Keys({ app }: { app: Schema<"App"> }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const scope = { tenant: app.tenant, app: app.id };
  const [opened, setOpened] = useState<"create" | "rotate">();
  const [secret, setSecret] = useState<Schema<"CreatedKey">>();
  const pages = $api.useInfiniteQuery("get", "/apps/{id}/keys", { params: { path: { id: app.id } } }, { ...BY_AFTER, refetchInterval: USES_MS });
  // Tokens stand with the door that they open.
  const keys = itemsOf(pages).filter((key) => key.kind === "signing");
  const valid = keys.filter((key) => key.state === "valid");
  const revoke = (key: Key) => key.state === "valid" && may("keys.revoke", scope) && <RevokeKey of={key} isLast={valid.length === 1} />;
  const columns: TableProps<Key>["columns"] = [
    { title: own("keys.id"), key: "id", width: 185, render: (_, key) => <span className="mono">{key.id}</span> },
    { title: own("keys.state"), key: "state", width: 90, render: (_, key) => <KeyState state={key.state} /> },
    {
      title: <Tooltip title={own("keys.last_used_help")}>{own("keys.last_used")}</Tooltip>,
      key: "used",
      width: 120,
      render: (_, key) => <Moment at={key.last_used_at} relative otherwise={t("never")} />,
    },
    { title: own("keys.ends"), key: "ends", width: 150, render: (_, key) => <KeyEnds of={key} /> },
    {
      title: t("created_at"),
      key: "created",
      width: 170,
      render: (_, key) => (
        <>
          <Moment at={key.created_at} exactness="minute" />
          <div className="soft">{`${own("keys.created_by")} ${key.created_by}`}</div>
        </>
      ),
    },
    { title: own("keys.note"), dataIndex: "note", width: 160 },
    { title: t("actions"), key: "actions", width: 100, render: (_, key) => revoke(key) },
  ];
  return (
    <Card
      size="small"
      title={<h2 className="card-title">{own("keys.title")}</h2>}
      extra={
        <Flex gap="small">
          {may("keys.create", scope) && <Button onClick={() => setOpened("create")}>{own("keys.create")}</Button>}
          {may("keys.rotate", scope) && <Button onClick={() => setOpened("rotate")}>{own("keys.rotate")}</Button>}
        </Flex>
      }
    >
      <p className="soft card-lead">{own("keys.subtitle")}</p>
      <List<Key>
        label={own("keys.title")}
        pages={pages}
        items={keys}
        rowKey={(key) => key.id}
        columns={columns}
        whenEmpty={<p>{own("keys.empty")}</p>}
        card={(key) => (
          <Flex vertical gap={4} align="start">
            <Flex gap="small" wrap>
              <span className="mono">{key.id}</span>
              <KeyState state={key.state} />
            </Flex>
            {key.note !== "" && <span>{key.note}</span>}
            <span>
              {`${own("keys.last_used")}: `}
              <Moment at={key.last_used_at} relative otherwise={t("never")} />
            </span>
            <span>
              {`${own("keys.ends")}: `}
              <KeyEnds of={key} />
            </span>
            {revoke(key)}
          </Flex>
        )}
      />
      {opened === "create" && <NewKey app={app} onCreated={setSecret} onClose={() => setOpened(undefined)} />}
      {opened === "rotate" && <RotateKeys app={app} onCreated={setSecret} onClose={() => setOpened(undefined)} />}
      {secret !== undefined && <SecretOnce app={app} secret={secret} onClose={() => setSecret(undefined)} />}
    </Card>
  );
}
