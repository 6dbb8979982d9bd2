import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Audit() {
  const { t } = useTranslation();
  return <Page title={t("pages.audit")}>{null}</Page>;
}
