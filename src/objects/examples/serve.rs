use objects::*;
fn main() {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let rt = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        let opened = ObjectStore::open(
            &folder.join("objects.db"),
            &folder.join("instance"),
            ObjectStoreOptions::default(),
        )
        .unwrap();
        let app = axum::Router::new().fallback_service(opened.store.service());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        axum::serve(listener, app).await.unwrap();
    });
}
