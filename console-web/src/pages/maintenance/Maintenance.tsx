import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Maintenance() {
  const { t } = useTranslation();
  return <Page title={t("pages.maintenance")}>{null}</Page>;
}
