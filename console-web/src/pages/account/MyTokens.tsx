/** My API tokens, and how to make one. */
import { Button, Flex, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { $api, client, type Schema } from "../../api/client";
import { examples } from "../../lib/tokens";
import { CopyButton } from "../../parts/CopyButton";
import { BY_AFTER } from "../../parts/List";
import { Secret } from "../../parts/Secret";
import { TokenList } from "../tokens/TokenList";
import { TokenForm } from "./TokenForm";

export function MyTokens() {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<Schema<"CreatedToken">>();
  const pages = $api.useInfiniteQuery("get", "/account/tokens", { params: { query: { limit: 100 } } }, BY_AFTER);
  const use = examples(window.location.origin);
  return (
    <Flex vertical gap="middle">
      <Flex justify="space-between" align="center" gap="small" wrap>
        <Typography.Text>{t("account.tokens_text")}</Typography.Text>
        <Button type="primary" onClick={() => setCreating(true)}>
          {t("tokens.create")}
        </Button>
      </Flex>
      <TokenList
        label={t("account.tokens")}
        pages={pages}
        whenEmpty={t("tokens.empty_mine")}
        mayRevoke
        revoke={(id) => client.DELETE("/account/tokens/{id}", { params: { path: { id } } })}
      />
      <TokenForm open={creating} onMade={setMade} onClose={() => setCreating(false)} />
      <Secret title={t("tokens.secret_title", { name: made?.name ?? "" })} value={made?.secret} onClose={() => setMade(undefined)}>
        <Flex justify="space-between" align="center" gap="small">
          <Typography.Text>{t("tokens.secret_use")}</Typography.Text>
          <CopyButton text={use} label={common.t("copy")} />
        </Flex>
        <pre className="raw">{use}</pre>
      </Secret>
    </Flex>
  );
}
