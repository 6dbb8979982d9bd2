import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Tenants() {
  const { t } = useTranslation();
  return <Page title={t("pages.tenants")}>{null}</Page>;
}
