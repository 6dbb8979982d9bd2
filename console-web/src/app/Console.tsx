/** The console of somebody who is signed in: the frame, and the page of the address. */
import { Flex, Result, Spin } from "antd";
import { Suspense } from "react";
import { useTranslation } from "react-i18next";
import { Link, Route, Routes, useLocation } from "react-router";
import { LiveProvider } from "../api/live";
import { useSession } from "../api/session";
import { useTenant } from "../lib/tenant";
import { Boundary } from "./Boundary";
import { Layout } from "./Layout";
import { PAGES } from "./pages";

/** Something is on its way. */
export function Waiting() {
  const { t } = useTranslation();
  return (
    <Flex justify="center" className="waiting" role="status" aria-label={t("loading")}>
      <Spin size="large" />
    </Flex>
  );
}

function NoSuchPage() {
  const { t } = useTranslation();
  return <Result status="404" title={t("not_found_title")} subTitle={t("not_found_text")} extra={<Link to="/">{t("to_overview")}</Link>} />;
}

export function Console() {
  const { may } = useSession();
  const { tenant } = useTenant();
  const { pathname } = useLocation();
  return (
    <LiveProvider tenant={tenant}>
      <Layout>
        <Boundary about={pathname}>
          <Suspense fallback={<Waiting />}>
            <Routes>
              {/* Also those that one may not open: `/tasks/new` is no task of that name. */}
              {PAGES.map(({ path, needs, Page }) => (
                <Route key={path} path={path} element={needs === undefined || may(needs) ? <Page /> : <NoSuchPage />} />
              ))}
              <Route path="*" element={<NoSuchPage />} />
            </Routes>
          </Suspense>
        </Boundary>
      </Layout>
    </LiveProvider>
  );
}
