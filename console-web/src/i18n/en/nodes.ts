export default { title: "nodes" } as const;
