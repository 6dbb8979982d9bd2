export default { title: "overview" } as const;
