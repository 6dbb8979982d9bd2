import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Quotas() {
  const { t } = useTranslation();
  return <Page title={t("pages.quotas")}>{null}</Page>;
}
