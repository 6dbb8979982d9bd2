/** The button that ends a key or token at once; it says whether it is in use. */
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
  const { t: ofToken } = useTranslation("xxljob");
  const { run } = useAction();
  const isToken = of.kind === "token";
  const now = useNow(10_000);
  const ago = of.last_used_at == null ? undefined : Math.max(0, now - of.last_used_at);
  const used = { span: span(Math.round((ago ?? 0) / 1_000) * 1_000) };
  const revoke = () => run(() => client.DELETE("/keys/{id}", { params: { path: { id: of.id } } }), { done: isToken ? ofToken("token.revoked_done") : own("keys.revoked_done") });
  return (
    <Confirm
      label={own("keys.revoke")}
      question={isToken ? ofToken("token.revoke_question", { id: of.id }) : own("keys.revoke_question", { id: of.id })}
      button={{ size: "small" }}
      consequence={
        <Flex vertical gap="small">
          {ago !== undefined && ago < IN_USE_MS && (
            <Alert type="warning" showIcon title={isToken ? ofToken("token.revoke_recent", used) : own("keys.revoke_recent", used)} />
          )}
          {isLast && <Alert type="warning" showIcon title={isToken ? ofToken("token.revoke_last") : own("keys.revoke_last")} />}
          <span>{isToken ? ofToken("token.revoke_consequence") : own("keys.revoke_consequence")}</span>
          {ago === undefined && <span>{own("keys.revoke_unused")}</span>}
        </Flex>
      }
      onConfirm={revoke}
    />
  );
}
