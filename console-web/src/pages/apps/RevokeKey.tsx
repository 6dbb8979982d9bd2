/** The button that ends a key at once; it says whether the key is in use. */
import { Alert, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { useNow } from "../../lib/now";
import { span } from "../../lib/time";
import { Confirm } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";

/** Nodes write down the use of a key once a minute: used within this time is used now. */
const IN_USE_MS = 10 * 60_000;

export function RevokeKey({ of, isLast }: { of: Schema<"Key">; isLast: boolean }) {
  const { t: own } = useTranslation("executors");
  const { run } = useAction();
  const now = useNow(10_000);
  const ago = of.last_used_at == null ? undefined : Math.max(0, now - of.last_used_at);
  const revoke = () => run(() => client.DELETE("/keys/{id}", { params: { path: { id: of.id } } }), { done: own("keys.revoked_done") });
  return (
    <Confirm
      label={own("keys.revoke")}
      question={own("keys.revoke_question", { id: of.id })}
      button={{ size: "small" }}
      consequence={
        <Flex vertical gap="small">
          {ago !== undefined && ago < IN_USE_MS && (
            <Alert type="warning" showIcon title={own("keys.revoke_recent", { span: span(Math.round(ago / 1_000) * 1_000) })} />
          )}
          {isLast && <Alert type="warning" showIcon title={own("keys.revoke_last")} />}
          <span>{own("keys.revoke_consequence")}</span>
          {ago === undefined && <span>{own("keys.revoke_unused")}</span>}
        </Flex>
      }
      onConfirm={revoke}
    />
  );
}
