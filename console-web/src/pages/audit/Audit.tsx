import { Segmented } from "antd";
import { useTranslation } from "react-i18next";
import { useFilters } from "../../lib/search";
import { Page } from "../../parts/Page";
import { Chains } from "./Chains";
import { Entries } from "./Entries";

export default function Audit() {
  const { t } = useTranslation("audit");
  const common = useTranslation();
  const { filters, set } = useFilters(["view"]);
  const isChains = filters.view === "chains";
  return (
    <Page title={common.t("pages.audit")} subtitle={t("about")}>
      <Segmented
        className="segments"
        value={isChains ? "chains" : "entries"}
        onChange={(view) => set({ view: view === "chains" ? view : undefined })}
        options={[
          { value: "entries", label: t("entries") },
          { value: "chains", label: t("chains") },
        ]}
      />
      {isChains ? <Chains /> : <Entries />}
    </Page>
  );
}
