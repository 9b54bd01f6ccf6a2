/** What a session is for: the venue's names of its ends. */
enum Target {
    ORDERS("WALRAS"),
    DROP_COPY("WALRAS-DROP"),
    MARKET_DATA("WALRAS-MD");

    final String compId;

    Target(String compId) {
        this.compId = compId;
    }

    static Target of(String compId) {
        for (Target target : values()) {
            if (target.compId.equals(compId)) {
                return target;
            }
        }
        throw new IllegalArgumentException(compId);
    }
}
