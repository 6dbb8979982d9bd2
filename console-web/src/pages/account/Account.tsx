import { Alert } from "antd";
import { useTranslation } from "react-i18next";
import { useSession } from "../../api/session";
import { useFilters } from "../../lib/search";
import { Page } from "../../parts/Page";
import { Sections } from "../../parts/Sections";
import { MyAccess } from "./MyAccess";
import { MyPassword } from "./MyPassword";
import { MySessions } from "./MySessions";
import { MyTokens } from "./MyTokens";
import { Preferences } from "./Preferences";
import { Profile } from "./Profile";

export default function Account() {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { me } = useSession();
  const { filters, set } = useFilters(["tab"]);
  // The node answers these with a session only: a token does nothing to its owner's account.
  const isSession = me.kind === "user";
  const needsSession = <Alert type="info" showIcon title={t("account.session_only")} />;
  const items = [
    { key: "profile", label: t("account.profile"), children: <Profile /> },
    { key: "access", label: t("account.access"), children: <MyAccess /> },
    { key: "password", label: t("account.password"), children: isSession ? <MyPassword /> : needsSession },
    { key: "sessions", label: t("account.sessions"), children: isSession ? <MySessions /> : needsSession },
    { key: "tokens", label: t("account.tokens"), children: isSession ? <MyTokens /> : needsSession },
    { key: "preferences", label: t("account.preferences"), children: <Preferences /> },
  ];
  return (
    <Page title={common.t("pages.account")}>
      <Sections
        label={common.t("pages.account")}
        active={items.find(({ key }) => key === filters.tab)?.key ?? "profile"}
        onChange={(tab) => set({ tab: tab === "profile" ? undefined : tab })}
        items={items}
      />
    </Page>
  );
}
