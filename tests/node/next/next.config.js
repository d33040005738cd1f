// The package has an addon, which Next must not bundle.
export default { serverExternalPackages: ["segue-mcp"] };
