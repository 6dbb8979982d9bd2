import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Users() {
  const { t } = useTranslation();
  return <Page title={t("pages.users")}>{null}</Page>;
}
