export default { title: "statistics" } as const;
