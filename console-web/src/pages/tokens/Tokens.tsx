import { useTranslation } from "react-i18next";
import { $api, client } from "../../api/client";
import { useSession } from "../../api/session";
import { useFilters } from "../../lib/search";
import { BY_AFTER } from "../../parts/List";
import { Page } from "../../parts/Page";
import { UserChoice } from "../../parts/UserChoice";
import { TokenList } from "./TokenList";

export default function Tokens() {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { mayWhole } = useSession();
  const { filters, set, isFiltered } = useFilters(["user"]);
  const pages = $api.useInfiniteQuery("get", "/tokens", { params: { query: { limit: 100, user: filters.user } } }, BY_AFTER);
  return (
    <Page title={common.t("pages.tokens")} subtitle={t("tokens.about")}>
      <UserChoice label={t("tokens.filter_user")} value={filters.user} onChange={(user) => set({ user })} />
      <TokenList
        label={common.t("pages.tokens")}
        pages={pages}
        isFiltered={isFiltered}
        withOwner
        whenEmpty={t("tokens.empty")}
        mayRevoke={mayWhole("tokens.revoke", undefined)}
        revoke={(id) => client.DELETE("/tokens/{id}", { params: { path: { id } } })}
      />
    </Page>
  );
}
