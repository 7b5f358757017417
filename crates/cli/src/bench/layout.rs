//! The znodes of a run: made before it, removed after it.

use std::collections::VecDeque;

use anyhow::{Context, Result};
use quenda_client::{Client, Error, Pending, open_acl};
use quenda_proto::Op;
use quenda_proto::mode::CreateMode;
use quenda_proto::records::{CreateRequest, DeleteRequest};

use super::args::{BenchArgs, Workload};
use super::connect_options;

/// Znodes in one folder.
pub const FOLDER: usize = 100;

/// Requests in flight while znodes are made and removed.
const WINDOW: usize = 500;

/// Where the znodes of a run are.
pub struct Layout {
    root: String,
    client: Client,
}

impl Layout {
    /// Makes the root and, for workloads that use existing znodes, these.
    pub async fn make(args: &BenchArgs) -> Result<Layout> {
        let (client, _) = Client::connect(args.host(0), &connect_options(args)).await?;
        let session = client.session().id;
        let root = match &args.root {
            Some(root) => root.clone(),
            None => format!("/quenda-bench-{session:x}"),
        };
        client
            .create(&root, None, &open_acl(), CreateMode::Persistent)
            .await
            .with_context(|| format!("cannot create {root}"))?;
        let layout = Layout { root, client };
        let count = match args.workload {
            Workload::Create
            | Workload::Sequential
            | Workload::CreateDelete
            | Workload::Sessions
            | Workload::Survive => 0,
            Workload::Watch => 1,
            _ => args.znodes,
        };
        if let Err(error) = layout.fill(count, args.size).await {
            if let Err(left_over) = layout.remove().await {
                eprintln!("quenda bench: {left_over:#}");
            }
            return Err(error).context("cannot create the znodes");
        }
        Ok(layout)
    }

    pub fn root(&self) -> &str {
        &self.root
    }

    /// The client that made the znodes.
    pub fn client(&self) -> &Client {
        &self.client
    }

    async fn fill(&self, count: usize, size: usize) -> Result<(), Error> {
        let data = vec![b'x'; size];
        let mut window = Window::default();
        for index in 0..count {
            if index % FOLDER == 0 {
                let folder = folder(&self.root, index);
                window.add(self.create(&folder, None)).await?;
            }
            let path = znode(&self.root, index);
            window.add(self.create(&path, Some(&data))).await?;
        }
        window.drain().await
    }

    fn create(&self, path: &str, data: Option<&[u8]>) -> Pending {
        let request = CreateRequest {
            path: Some(path.into()),
            data,
            acl: Some(open_acl()),
            flags: CreateMode::Persistent as i32,
        };
        self.client.submit(Op::Create, &request)
    }

    /// Removes the znodes unless they are to be kept, and ends the session.
    pub async fn finish(self, keep: bool) -> Result<()> {
        if keep {
            return Ok(self.client.close().await?);
        }
        self.remove().await
    }

    /// Removes the root and the two levels below it, and ends the session.
    async fn remove(self) -> Result<()> {
        self.remove_all()
            .await
            .with_context(|| format!("cannot remove {}; it is left over", self.root))?;
        self.client.close().await?;
        Ok(())
    }

    async fn remove_all(&self) -> Result<(), Error> {
        let mut window = Window::default();
        let (folders, _) = self.client.get_children(&self.root, false).await?;
        for folder in folders {
            let folder = format!("{}/{folder}", self.root);
            let (names, _) = self.client.get_children(&folder, false).await?;
            for name in names {
                window.add(self.delete(&format!("{folder}/{name}"))).await?;
            }
            window.add(self.delete(&folder)).await?;
        }
        window.add(self.delete(&self.root)).await?;
        window.drain().await
    }

    fn delete(&self, path: &str) -> Pending {
        let request = DeleteRequest {
            path: Some(path.into()),
            version: -1,
        };
        self.client.submit(Op::Delete, &request)
    }
}

pub fn folder(root: &str, index: usize) -> String {
    format!("{root}/d{:07}", index / FOLDER)
}

pub fn znode(root: &str, index: usize) -> String {
    format!("{root}/d{:07}/n{:02}", index / FOLDER, index % FOLDER)
}

/// Requests in flight, the oldest awaited first.
#[derive(Default)]
struct Window {
    pending: VecDeque<Pending>,
}

impl Window {
    async fn add(&mut self, request: Pending) -> Result<(), Error> {
        self.pending.push_back(request);
        if self.pending.len() > WINDOW
            && let Some(oldest) = self.pending.pop_front()
        {
            oldest.await?;
        }
        Ok(())
    }

    async fn drain(mut self) -> Result<(), Error> {
        while let Some(oldest) = self.pending.pop_front() {
            oldest.await?;
        }
        Ok(())
    }
}
