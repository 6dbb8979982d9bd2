import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Roles() {
  const { t } = useTranslation();
  return <Page title={t("pages.roles")}>{null}</Page>;
}
