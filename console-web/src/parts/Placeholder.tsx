/** What stands where something is on its way. Who hears the page is told by `aria-busy` around it. */
import { Skeleton } from "antd";

export function Placeholder({ rows = 2, width }: { rows?: number; width?: string }) {
  return (
    <div aria-hidden="true">
      <Skeleton active title={false} paragraph={{ rows, width }} />
    </div>
  );
}
