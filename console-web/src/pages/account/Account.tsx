import { useTranslation } from "react-i18next";
import { Page } from "../../parts/Page";

export default function Account() {
  const { t } = useTranslation();
  return <Page title={t("pages.account")}>{null}</Page>;
}
