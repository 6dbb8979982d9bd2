/** Where executors find the nodes: the addresses that these report. */
import { $api } from "../../api/client";
import { useSession } from "../../api/session";

export function useNodeAddresses(): string[] {
  const { may } = useSession();
  const { data } = $api.useQuery("get", "/nodes", {}, { enabled: may("nodes.read") });
  const nodes = data?.items.filter((node) => node.online).map((node) => node.address) ?? [];
  // Users who may not see the nodes are shown the address of this one.
  return nodes.length > 0 ? nodes : [window.location.origin];
}
